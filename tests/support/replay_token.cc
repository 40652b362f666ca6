// Replays one plan on the library's own stager: prints what it does, what went wrong and the time
// line. `bazel run //tests/support:replay_token -- h2d1:...`
#include <cstdio>
#include <string>

#include "h2d/tests/support/crash_token.h"
#include "h2d/tests/support/fake_harness.h"
#include "h2d/tests/support/real_stager.h"
#include "h2d/tests/support/run_plan.h"

int main(int argc, char** argv) {
  using namespace h2d::testing;
  const auto bytes = argc == 2 ? PlanFromToken(argv[1]) : std::nullopt;
  if (!bytes) {
    std::fprintf(stderr, "usage: %s h2d1:...\n", argv[0]);
    return 2;
  }
  const Plan plan = DecodePlan(*bytes);
  SetCrashPlan(*bytes);
  const auto harness = MakeFakeHarness(plan, {.keep_trace = true});
  const RunResult result = RunPlan(plan, *harness, MakeRealStager);
  std::printf("%s\n%s\n%s\n", PlanToString(plan).c_str(), harness->Timeline().c_str(),
              result.ok() ? "The stager did everything right." : result.failure.c_str());
  return result.ok() ? 0 : 1;
}
