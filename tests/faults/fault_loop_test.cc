// Every call of the device that a random plan makes the library make fails once: the first of each
// kind, the second and so on, in each way (fault_points.h). The plans reach every state that has a
// name. In each run the oracle watches I5: no mirror lies, no slot is lost, the next good call
// works, and no memory leaks.
//
// H2D_FAULT_PLANS: how many plans; without it a few short ones.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <string>

#include "h2d/stager/internal/state_mark.h"
#include "h2d/tests/faults/fault_points.h"
#include "h2d/tests/faults/faulted_plan.h"
#include "h2d/tests/support/property.h"

namespace h2d::testing {
namespace {

using internal::Mark;

RunResult FailEachCallOf(const Plan& plan, bool keep_trace, FaultTotals& totals) {
  RunResult last;
  const auto run = [&](const Fault& fault) {
    FaultedRun faulted;
    last = RunWithFault(plan, fault, keep_trace, faulted.struck);
    faulted.errors = last.counts.device_errors;
    faulted.failure = last.failure;
    return faulted;
  };
  last.failure = FailEachCall(run, totals);
  return last;
}

TEST(FaultLoop, AnyCallMayFailOnceOrForEverUntilNoneIsLeft) {
  const char* wanted = std::getenv("H2D_FAULT_PLANS");
  const bool few = wanted == nullptr;
  const uint64_t plans = few ? 4 : std::strtoull(wanted, nullptr, 10);
  internal::EnableMarks(true);
  internal::ResetMarks();
  // Many writes between the submits of a step.
  PlanProfile profile = ProfileWith({{OpKind::kSetField, 14}});
  profile.max_ops = few ? 12 : 50;
  FaultTotals totals;
  const PropertyReport report = CheckPlans(
      "fault loop", profile,
      [&](const Plan& plan, bool keep_trace) { return FailEachCallOf(plan, keep_trace, totals); },
      plans);
  internal::EnableMarks(false);
  EXPECT_EQ(report.failure, "");
  std::cout << report.plans << " plans, " << totals.runs << " runs, " << totals.points
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
