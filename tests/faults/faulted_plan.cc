#include "h2d/tests/faults/faulted_plan.h"

#include <memory>
#include <string>
#include <utility>

#include "h2d/tests/support/fake_harness.h"
#include "h2d/tests/support/real_stager.h"

namespace h2d::testing {
namespace {

bool RemakesStreams(const RunResult& result) {
  return result.counts.ops[static_cast<size_t>(OpKind::kRemakeStream)] != 0;
}

}  // namespace

RunResult RunWithFault(const Plan& plan, const Fault& fault, bool keep_trace, bool& struck) {
  const auto harness = MakeFakeHarness(plan, {.keep_trace = keep_trace});
  bool not_made = false;
  RunResult result =
      RunPlan(plan, *harness,
              [&](std::shared_ptr<Device> device, const StagerOptions& options, size_t mirrors) {
                harness->ArmFault(fault);
                auto stager = MakeRealStager(std::move(device), options, mirrors);
                not_made = !stager.has_value();
                return stager;
              });
  struck = harness->faults_fired() != 0;
  if (not_made && struck) result.failure.clear();
  // What a copy may still read on a stream that is gone is leaked on purpose (I9).
  if (result.ok() && !RemakesStreams(result) && harness->PinnedBytesOwned() != 0) {
    result.failure = std::to_string(harness->PinnedBytesOwned()) + " B of pinned memory leaked";
  }
  return result;
}

}  // namespace h2d::testing
