// Prints the smallest failure of each wrong stager, as docs/minimal_failures.md holds them.
#include <cstdio>
#include <string>

#include "h2d/tests/minimal_failures/minimal_failure.h"

int main() {
  using namespace h2d::testing;
  std::printf(
      "# The smallest failure of each wrong stager\n\n"
      "Each section is a fault that `tests/wrong_stagers` plants in a small stager, the first "
      "random\n"
      "plan that reports it, reduced until nothing more can be left out, and the run of what is "
      "left.\n"
      "Operations and the device's choices shrink together. What an operation leaves unsaid is 0, "
      "and\n"
      "the device is kind where it says nothing. Printed by\n"
      "`bazel run //tests/minimal_failures:listing`; "
      "`//tests/minimal_failures:minimal_failures_test`\n"
      "demands of each that it is as short as these are.\n");
  for (uint32_t i = 1; i < kFlaws; ++i) {
    const auto flaw = static_cast<Flaw>(i);
    const auto found = FindMinimalFailure(flaw);
    std::printf("\n## %s\n\n", std::string(ToString(flaw)).c_str());
    if (!found) {
      std::printf("No plan reported it.\n");
      continue;
    }
    std::printf("Plan %d. `%s`\n\n```\n%s\n%s\n```\n\n```\n%s```\n", static_cast<int>(found->plans),
                found->token.c_str(), PlanToString(found->plan).c_str(),
                found->result.failure.substr(0, found->result.failure.find('\n')).c_str(),
                found->result.timeline.c_str());
  }
}
