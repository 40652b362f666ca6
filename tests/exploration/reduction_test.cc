// What the exploration of the stager leaves out, against the space of everything at small sizes.
#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <string>

#include "h2d/tests/exploration/small_world.h"
#include "h2d/tests/support/real_stager.h"

namespace h2d::testing {
namespace {

// One program of those that differ in names stands for just as many runs as there are, and what its
// calls answer they all do.
TEST(Reduction, OneOfTheSymmetricProgramsStandsForAllOfThem) {
  for (const uint32_t slots : {1U, 2U}) {
    WorldBounds bounds{.copies = {3}, .slots = slots, .keep_outcomes = true};
    const WorldReport reduced = ExploreWorld(bounds, MakeRealStager);
    bounds.one_of_symmetric = false;
    const WorldReport all = ExploreWorld(bounds, MakeRealStager);
    ASSERT_EQ(all.failure + reduced.failure, "");
    EXPECT_EQ(reduced.stands_for, all.exploration.runs());
    EXPECT_EQ(reduced.outcomes, all.outcomes);
    EXPECT_GT(reduced.outcomes.size(), 5U);
    std::cout << bounds.ToString() << ": " << all.exploration.runs() << " runs, reduced to "
              << reduced.exploration.runs() << "\n";
  }
}

// Two tasks that share a mirror: every schedule of them has the outcome of one that was made.
TEST(Reduction, EveryScheduleOfTwoTasksIsEquivalentToOneThatIsExplored) {
  const WorldBounds bounds{
      .copies = {1, 1}, .slots = 2, .streams = 1, .mirrors = 1, .images = 1, .keep_outcomes = true};
  const WorldReport reduced = ExploreWorld(bounds, MakeRealStager);
  const WorldReport all = ExploreWorld(bounds, MakeRealStager, /*reduce=*/false);
  ASSERT_EQ(all.failure + reduced.failure, "");
  ASSERT_TRUE(all.exploration.complete() && reduced.exploration.complete());
  std::map<std::string, bool> seen;
  for (const auto& [outcome, runs] : all.outcomes) seen[outcome] = false;
  for (const auto& [outcome, runs] : reduced.outcomes) {
    ASSERT_TRUE(seen.contains(outcome)) << outcome;
    seen[outcome] = true;
  }
  for (const auto& [outcome, found] : seen) EXPECT_TRUE(found) << outcome;
  EXPECT_EQ(seen.size(), 2U) << "either task is the one that copies";
  std::cout << bounds.ToString() << ": " << all.exploration.ToString() << ", reduced to "
            << reduced.exploration.ToString() << "\n";
}

}  // namespace
}  // namespace h2d::testing
