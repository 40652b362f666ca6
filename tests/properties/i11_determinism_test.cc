// I11: a run of the simulated device is a function of its choices: the same plan gives the same
// trace, hash for hash, and the same outcomes.
#include <gtest/gtest.h>

#include "h2d/tests/properties/plan_property.h"
#include "h2d/tests/support/fake_harness.h"
#include "h2d/tests/support/random_runs.h"
#include "h2d/tests/support/real_stager.h"

namespace h2d::testing {
namespace {

RunResult RunOnce(const Plan& plan, bool keep_trace) {
  return RunPlan(plan, *MakeFakeHarness(plan, {.keep_trace = keep_trace}), MakeRealStager);
}

TEST(Determinism, TheSamePlanGivesTheSameTrace) {
  const PlanCheck twice = [](const Plan& plan, bool keep_trace) {
    const RunResult first = RunOnce(plan, false);
    // The trace is kept or not: neither may be seen in it.
    RunResult second = RunOnce(plan, keep_trace);
    if (second.ok() && first.trace_hash != second.trace_hash) {
      second.failure = "two runs of one plan have the hashes " + std::to_string(first.trace_hash) +
                       " and " + std::to_string(second.trace_hash) + " (I11)";
    }
    return second;
  };
  const PropertyReport report = CheckPlans("i11_determinism", ProfileWith({{OpKind::kFault, 1}}),
                                           twice, RunsFromEnvironment(kPlansOfProperty / 2));
  EXPECT_EQ(report.failure, "");
}

}  // namespace
}  // namespace h2d::testing
