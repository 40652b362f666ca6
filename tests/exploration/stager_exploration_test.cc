// Every run of the stager within small bounds, without a violation. The bounds are those of
// H2D_EXPLORATION: "small" for every build, "ci" for an optimised one, "long" for an hour.
#include <gtest/gtest.h>

#include <cstdlib>
#include <initializer_list>
#include <iostream>
#include <string_view>
#include <vector>

#include "h2d/tests/exploration/small_world.h"
#include "h2d/tests/support/real_stager.h"

namespace h2d::testing {
namespace {

std::vector<WorldBounds> SmallWorlds() {
  return {
      {.copies = {3}},
      {.copies = {2}, .fault = true},
      {.copies = {2}, .images = 3, .ends_in_flight = true},
      {.copies = {1, 1}, .slots = 1, .mirrors = 1, .images = 3},
      {.copies = {1, 1}, .slots = 2, .mirrors = 2},
      {.copies = {2, 1}, .slots = 2, .mirrors = 1},
  };
}

std::vector<WorldBounds> CiWorlds() {
  std::vector<WorldBounds> worlds;
  for (const uint32_t slots : {2U, 3U}) {
    for (uint32_t copies = 1; copies <= 6; ++copies) {
      worlds.push_back({.copies = {copies}, .slots = slots});
    }
    worlds.push_back({.copies = {4}, .slots = slots, .fault = true});
  }
  worlds.push_back({.copies = {4}, .images = 3, .ends_in_flight = true});
  for (WorldBounds shared : std::initializer_list<WorldBounds>{
           {.copies = {1, 1}, .slots = 1},
           {.before = 1, .copies = {1, 1}, .slots = 2},
           {.copies = {2, 1}, .slots = 2},
           {.copies = {2, 2}, .slots = 3},
           {.copies = {1, 1, 1}, .slots = 2},
       }) {
    shared.mirrors = 1;
    shared.images = 3;
    worlds.push_back(shared);
  }
  return worlds;
}

// Next larger. Two tasks that both wait for a slot have more schedules than anybody can make.
std::vector<WorldBounds> LongWorlds() {
  return {
      {.copies = {7}, .slots = 3},
      {.copies = {5}, .slots = 2, .fault = true},
      {.copies = {3, 2}, .slots = 4, .mirrors = 1, .images = 3},
      {.copies = {2, 2}, .slots = 3, .mirrors = 2},
      {.copies = {2, 1}, .slots = 1, .mirrors = 1, .max_runs = 1'000'000},
      {.before = 1, .copies = {1, 1}, .slots = 1, .mirrors = 1, .max_runs = 1'000'000},
      {.copies = {2, 2}, .slots = 2, .mirrors = 1, .max_runs = 1'000'000},
  };
}

std::vector<WorldBounds> Worlds() {
  const char* size = std::getenv("H2D_EXPLORATION");
  const std::string_view name = size == nullptr ? "small" : size;
  if (name == "ci") return CiWorlds();
  if (name == "long") return LongWorlds();
  return SmallWorlds();
}

class StagerExploration : public ::testing::TestWithParam<WorldBounds> {};

TEST_P(StagerExploration, EveryRunIsRight) {
  const WorldBounds& bounds = GetParam();
  const WorldReport report = ExploreWorld(bounds, MakeRealStager);
  ASSERT_EQ(report.failure, "") << bounds.ToString();
  const bool bounded = bounds.max_runs != WorldBounds().max_runs;
  EXPECT_TRUE(report.exploration.complete() || bounded) << report.exploration.ToString();
  std::cout << bounds.ToString() << ": " << report.exploration.ToString() << "; by symmetry "
            << report.stands_for << " runs" << std::endl;
}

INSTANTIATE_TEST_SUITE_P(Worlds, StagerExploration, ::testing::ValuesIn(Worlds()));

}  // namespace
}  // namespace h2d::testing
