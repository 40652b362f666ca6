// The scenarios of the field, each under every fault: the first call of the device of each kind
// fails, then the second, until the scenario has no such call left, in each way (fault_points.h).
// Whatever fails, no mirror lies, no slot is lost, the next good call works, nothing leaks and no
// access races (I5).
//
// H2D_FAULT_PLANS: with any value on an unkind device as well.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <string>

#include "h2d/stager/internal/state_mark.h"
#include "h2d/tests/faults/fault_points.h"
#include "h2d/tests/faults/faulted_plan.h"
#include "h2d/tests/scenarios/plans/scenario_plans.h"
#include "h2d/tests/support/fake_harness.h"
#include "h2d/tests/support/random_runs.h"
#include "h2d/tests/support/real_stager.h"

namespace h2d::testing {
namespace {

using scenarios::ScenarioPlan;
using scenarios::ScenarioPlans;

std::string Label(const ScenarioPlan& scenario) {
  const std::string name(scenario.name);
  if (scenario.numbers.empty()) return name;
  return name + " (" + std::string(scenario.numbers) + ")";
}

RunResult RunWithoutFault(const Plan& plan) {
  return RunPlan(plan, *MakeFakeHarness(plan, {.keep_trace = true}), MakeRealStager);
}

TEST(ScenarioPlans, WithoutAFaultEachHoldsAndIsTheScenarioThatItsNameSays) {
  internal::EnableMarks(true);
  for (const ScenarioPlan& scenario : ScenarioPlans()) {
    SCOPED_TRACE(Label(scenario));
    internal::ResetMarks();
    const RunResult result = RunWithoutFault(scenario.plan);
    EXPECT_TRUE(result.ok()) << result.failure << "\n"
                             << PlanToString(scenario.plan) << result.timeline;
    for (const internal::Mark mark : scenario.marks) {
      EXPECT_GT(internal::MarkHits(mark), 0U) << "not reached: " << internal::Name(mark);
    }
    uint64_t made = 0;
    for (const uint64_t ops : result.counts.ops) made += ops;
    EXPECT_GE(made, scenario.plan.ops.size()) << "an operation could not be made";
    const Plan unkind = scenarios::OnUnkindDevice(scenario.plan);
    const RunResult result_there = RunWithoutFault(unkind);
    EXPECT_TRUE(result_there.ok()) << result_there.failure << "\n" << result_there.timeline;
  }
  internal::EnableMarks(false);
}

// Fails each call of a plan; a failure comes with its token and its time line.
void FailEachCallOf(const Plan& plan, FaultTotals& totals) {
  Fault last;
  const auto run = [&](const Fault& fault) {
    last = fault;
    FaultedRun faulted;
    const RunResult result = RunWithFault(plan, fault, /*keep_trace=*/false, faulted.struck);
    faulted.errors = result.counts.device_errors;
    faulted.failure = result.failure;
    return faulted;
  };
  const std::string failure = FailEachCall(run, totals);
  if (failure.empty()) return;
  bool struck = false;
  ADD_FAILURE() << failure << "\n"
                << PlanToToken(EncodePlan(plan)) << "\n"
                << PlanToString(plan) << RunWithFault(plan, last, true, struck).timeline;
}

TEST(ScenarioFaults, AnyCallOfAnyScenarioMayFailOnceOrForEverUntilNoneIsLeft) {
  const bool unkind_as_well = std::getenv("H2D_FAULT_PLANS") != nullptr;
  // With few plans (a sanitizer's build) one scenario in six.
  const size_t step = RunsFromEnvironment(1000) < 1000 ? 6 : 1;
  FaultTotals all;
  for (size_t i = 0; i < ScenarioPlans().size(); i += step) {
    const ScenarioPlan& scenario = ScenarioPlans()[i];
    SCOPED_TRACE(Label(scenario));
    FaultTotals totals;
    FailEachCallOf(scenario.plan, totals);
    if (unkind_as_well) FailEachCallOf(scenarios::OnUnkindDevice(scenario.plan), totals);
    std::cout << Label(scenario) << ": " << totals.runs << " runs, " << totals.points << " points, "
              << totals.errors << " errors\n";
    EXPECT_GT(totals.errors, 0U);
    all.runs += totals.runs;
    all.points += totals.points;
  }
  std::cout << "all scenarios: " << all.runs << " runs, " << all.points
            << " of which a fault struck\n";
}

}  // namespace
}  // namespace h2d::testing
