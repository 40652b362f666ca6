// The exploration sees what it should: of each planted fault that lies within its bounds it finds a
// run that shows it, the same one in every run of this test, and in the stager without a fault it
// finds none.
#include <gtest/gtest.h>

#include <iostream>
#include <string>

#include "h2d/tests/exploration/small_world.h"
#include "h2d/tests/wrong_stagers/little_stager.h"

namespace h2d::testing {
namespace {

// Three copies on two streams through two mirrors, by one host thread.
WorldBounds Alone() { return {.copies = {3}, .images = 3, .ends_in_flight = true, .max_late = 3}; }
WorldBounds WithAFault() { return {.copies = {3}, .images = 3, .fault = true, .max_late = 2}; }
WorldBounds TwoTasks() {
  return {.copies = {2, 1}, .slots = 2, .mirrors = 2, .max_late = 1, .max_runs = 200'000};
}

WorldBounds TwoTasksForOneSlot() {
  return {.before = 1, .copies = {1, 1}, .slots = 1, .max_late = 1, .max_runs = 200'000};
}

struct Case {
  Flaw flaw;
  WorldBounds bounds;
  std::string_view says;  // the report's first line holds this
};

constexpr std::string_view kWrite = "write to the source of a copy in flight";
constexpr std::string_view kRelease = "release of the source of a copy in flight";
constexpr std::string_view kUnordered = "unordered accesses to the same bytes";
constexpr std::string_view kContent = "which no full copies leave";

std::vector<Case> Cases() {
  return {
      {Flaw::kNoWait, Alone(), kWrite},
      {Flaw::kRecordBeforeCopy, Alone(), kRelease},
      {Flaw::kOneEventForTwoSlots, Alone(), kRelease},
      {Flaw::kFreedAtEnqueue, Alone(), kRelease},
      {Flaw::kFreesWhatWasListed, TwoTasks(), kWrite},
      {Flaw::kErrorIsCompletion, WithAFault(), kWrite},
      {Flaw::kKeptAfterFailure, WithAFault(), kContent},
      {Flaw::kSkipWithoutWait, Alone(), kUnordered},
      {Flaw::kTrimWithoutWait, Alone(), kUnordered},
      {Flaw::kCopyWithoutWait, Alone(), kUnordered},
      {Flaw::kFailureForgetsOrder, WithAFault(), kUnordered},
      {Flaw::kWaitsForRecycledSlot, TwoTasksForOneSlot(), "unordered record"},
      {Flaw::kTrimsOverUnknownBytes, Alone(), kContent},
      {Flaw::kFreesInUse, Alone(), kRelease},
  };
}

class WrongStagerExploration : public ::testing::TestWithParam<Case> {};

TEST_P(WrongStagerExploration, ItsFaultIsFound) {
  const auto& [flaw, bounds, says] = GetParam();
  const WorldReport report = ExploreWorld(bounds, LittleStagerWith(flaw));
  ASSERT_NE(report.failure, "") << ToString(flaw) << ": " << report.exploration.ToString();
  const std::string line = report.failure.substr(0, report.failure.find('\n'));
  EXPECT_NE(line.find(says), std::string::npos) << report.failure;
  const WorldReport again = ExploreWorld(bounds, LittleStagerWith(flaw));
  EXPECT_EQ(again.failure, report.failure);
  EXPECT_EQ(again.exploration.runs(), report.exploration.runs());
  std::cout << ToString(flaw) << ": found by run "
            << report.exploration.runs() + report.exploration.redundant_runs() + 1 << ": " << line
            << "\n";
}

INSTANTIATE_TEST_SUITE_P(Flaws, WrongStagerExploration, ::testing::ValuesIn(Cases()));

TEST(WrongStagerExploration, TheStagerWithoutAFaultPasses) {
  for (WorldBounds bounds : {Alone(), WithAFault(), TwoTasks(), TwoTasksForOneSlot()}) {
    bounds.max_runs = 2'000;
    const WorldReport report = ExploreWorld(bounds, LittleStagerWith(Flaw::kNone));
    EXPECT_EQ(report.failure, "") << bounds.ToString();
    std::cout << bounds.ToString() << ": " << report.exploration.ToString() << "\n";
  }
}

}  // namespace
}  // namespace h2d::testing
