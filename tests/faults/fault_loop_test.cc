// Every call of the device that a plan makes the library make fails once: the first of each kind,
// the second and so on, until a run has no failure left. Once, for ever, or with the device lost;
// before the call was carried out or after it, as an error of earlier work that a later call
// reports. The plans are random and reach every state that has a name. In each run the oracle watches I5: no mirror lies, no slot
// is lost, the next good call works, and no memory leaks.
//
// H2D_FAULT_PLANS: how many plans; without it a few short ones.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "h2d/device/faulty/fault.h"
#include "h2d/stager/internal/state_mark.h"
#include "h2d/tests/support/fake_harness.h"
#include "h2d/tests/support/property.h"
#include "h2d/tests/support/real_stager.h"

namespace h2d::testing {
namespace {

using internal::Mark;

struct Totals {
  uint64_t runs = 0;
  uint64_t faults = 0;  // that struck
  uint64_t errors = 0;  // that reached a caller
};

std::string ToString(const Fault& fault) {
  const char* span = fault.span == FaultSpan::kOnce      ? "once"
                     : fault.span == FaultSpan::kForEver ? "for ever"
                                                         : "and the device is lost";
  return "call " + std::to_string(fault.call) + " of " + std::string(h2d::ToString(fault.kind)) +
         " fails " + span +
         (fault.timing == FaultTiming::kAfterCall ? ", after it was carried out" : "");
}

bool RemakesStreams(const RunResult& result) {
  return result.counts.ops[static_cast<size_t>(OpKind::kRemakeStream)] != 0;
}

// Runs the plan with `fault` armed once the stager was made; `struck` says whether it struck.
RunResult RunWith(const Plan& plan, const Fault& fault, bool keep_trace, bool& struck) {
  const auto harness = MakeFakeHarness(plan, {.keep_trace = keep_trace});
  RunResult result =
      RunPlan(plan, *harness,
              [&](std::shared_ptr<Device> device, const StagerOptions& options, size_t mirrors) {
                auto stager = MakeRealStager(std::move(device), options, mirrors);
                harness->ArmFault(fault);
                return stager;
              });
  struck = harness->faults_fired() != 0;
  // What a copy may still read on a stream that is gone is leaked on purpose (I9).
  if (result.ok() && !RemakesStreams(result) && harness->PinnedBytesOwned() != 0) {
    result.failure = std::to_string(harness->PinnedBytesOwned()) + " B of pinned memory leaked";
  }
  if (!result.ok()) result.failure = ToString(fault) + ": " + result.failure;
  return result;
}

RunResult FailEachCall(const Plan& plan, bool keep_trace, Totals& totals) {
  RunResult result;
  for (const CallKind kind : kCallKinds) {
    for (const FaultSpan span : {FaultSpan::kOnce, FaultSpan::kForEver, FaultSpan::kSticky}) {
      for (const FaultTiming timing : {FaultTiming::kBeforeCall, FaultTiming::kAfterCall}) {
        bool struck = true;
        for (uint64_t call = 1; struck; ++call) {
          result = RunWith(plan, {.kind = kind, .call = call, .span = span, .timing = timing},
                           keep_trace, struck);
          ++totals.runs;
          totals.faults += struck ? 1 : 0;
          totals.errors += result.counts.device_errors;
          if (!result.ok()) return result;
        }
      }
    }
  }
  return result;
}

TEST(FaultLoop, AnyCallMayFailOnceOrForEverUntilNoneIsLeft) {
  const char* wanted = std::getenv("H2D_FAULT_PLANS");
  const bool few = wanted == nullptr;
  const uint64_t plans = few ? 4 : std::strtoull(wanted, nullptr, 10);
  internal::EnableMarks(true);
  internal::ResetMarks();
  PlanProfile profile = ProfileWith({{OpKind::kSetField, 8}});
  profile.max_ops = few ? 12 : 50;
  Totals totals;
  const PropertyReport report = CheckPlans(
      "fault loop", profile,
      [&](const Plan& plan, bool keep_trace) { return FailEachCall(plan, keep_trace, totals); },
      plans);
  internal::EnableMarks(false);
  EXPECT_EQ(report.failure, "");
  std::cout << report.plans << " plans, " << totals.runs << " runs, " << totals.faults
            << " of which a fault struck, " << totals.errors << " errors\n";
  EXPECT_GT(totals.errors, 0U);
  if (few) return;
  for (size_t i = 0; i < internal::kMarkCount; ++i) {
    const auto mark = static_cast<Mark>(i);
    EXPECT_NE(internal::MarkHits(mark), 0U) << "no plan reached: " << Name(mark);
  }
}

}  // namespace
}  // namespace h2d::testing
