#include "h2d/tests/minimal_failures/listing_text.h"

#include <sstream>

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

}  // namespace

std::string ListingIntroduction() { return kIntroduction; }

std::string ListingOf(Flaw flaw, const std::optional<MinimalFailure>& found) {
  std::string text = "\n## " + std::string(ToString(flaw)) + "\n\n";
  if (!found) return text + "No plan reported it.\n";
  return text + "Plan " + std::to_string(found->plans) + ". `" + found->token + "`\n\n```\n" +
         PlanToString(found->plan) + "\n" + WhatWasSeen(found->result) + "```\n";
}

}  // namespace h2d::testing
