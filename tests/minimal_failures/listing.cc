// Prints the smallest failure of each wrong stager, as docs/minimal_failures.md holds them.
#include <cstdio>
#include <sstream>
#include <string>

#include "h2d/tests/minimal_failures/minimal_failure.h"

namespace h2d::testing {
namespace {

constexpr const char* kIntroduction =
    R"(# The smallest failure of each wrong stager

Each section is a fault that `tests/wrong_stagers` plants in a small stager, the first random plan
that reports it, reduced until nothing more can be left out, and what is seen of it. Operations and
the device's choices shrink together: what an operation leaves unsaid is 0, and the device is kind
where it says nothing. Where no operation is left, the runner's last look finds the fault by itself:
it fills every slot once more and reads every destination.

Printed by `bazel run //tests/minimal_failures:listing`. `//tests/minimal_failures:minimal_failures_test`
demands of each that it is short, and that its token alone brings back the same run.
)";

// The rows of the time line from the first access of the first hazard to the second; without a
// hazard what the oracle found.
std::string WhatWasSeen(const RunResult& result) {
  std::istringstream lines(result.timeline);
  std::string text;
  std::string legend;
  bool between = false;
  bool drawn = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.find(" = ") != std::string::npos || line.starts_with("  time/ns")) {
      legend += line + "\n";
      continue;
    }
    // The line that draws the edge, and those that its words go on in.
    const bool edge = line.find("HAZARD") != std::string::npos;
    const bool row = line.size() > 2 && line[2] != ' ';
    if (drawn && !edge && row) break;
    drawn = drawn || edge;
    between = between || line.find(" !") != std::string::npos;
    if (between) text += line + "\n";
  }
  if (drawn) return legend + text;
  return result.failure.substr(0, result.failure.find("\n\n")) + "\n";
}

void Print(Flaw flaw) {
  const auto found = FindMinimalFailure(flaw);
  std::printf("\n## %s\n\n", std::string(ToString(flaw)).c_str());
  if (!found) {
    std::printf("No plan reported it.\n");
    return;
  }
  std::printf("Plan %d. `%s`\n\n```\n%s\n%s```\n", static_cast<int>(found->plans),
              found->token.c_str(), PlanToString(found->plan).c_str(),
              WhatWasSeen(found->result).c_str());
}

}  // namespace
}  // namespace h2d::testing

int main() {
  using namespace h2d::testing;
  std::printf("%s", kIntroduction);
  for (uint32_t i = 1; i < kFlaws; ++i) Print(static_cast<Flaw>(i));
}
