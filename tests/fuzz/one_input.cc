#include "h2d/tests/fuzz/one_input.h"

#include <vector>

#include "h2d/tests/support/crash_token.h"
#include "h2d/tests/support/fake_harness.h"
#include "h2d/tests/support/plan.h"
#include "h2d/tests/support/real_stager.h"
#include "h2d/tests/support/run_plan.h"

namespace h2d::testing {

std::string RunOneInput(std::span<const uint8_t> bytes) {
  const Plan plan = DecodePlan(bytes);
  const std::vector<uint8_t> whole = EncodePlan(plan);
  SetCrashPlan(whole);
  const RunResult result = RunPlan(plan, *MakeFakeHarness(plan), MakeRealStager);
  ClearCrashPlan();
  if (result.ok()) return {};
  return result.failure + "\nReplay with H2D_REPLAY=" + PlanToToken(whole) + "\n";
}

}  // namespace h2d::testing
