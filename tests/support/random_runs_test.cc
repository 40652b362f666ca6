#include "h2d/tests/support/random_runs.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace h2d::testing {
namespace {

class RandomRuns : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"H2D_PLANS", "H2D_SEED", "H2D_REPLAY"}) unsetenv(name);
  }
  static void Set(const char* name, const char* value) { setenv(name, value, /*overwrite=*/1); }
};

TEST_F(RandomRuns, WithoutTheEnvironmentATestMakesItsOwn) {
  EXPECT_EQ(RunsFromEnvironment(300), 300U);
  EXPECT_EQ(SeedFromEnvironment(), 0U);
  EXPECT_FALSE(ReplayedPlan().has_value());
  EXPECT_EQ(Seeds::FromEnvironment(300).first, 1U);
  EXPECT_EQ(Seeds::FromEnvironment(300).count, 300U);
}

TEST_F(RandomRuns, ThePlansScaleEveryTestAlike) {
  Set("H2D_PLANS", "100");
  EXPECT_EQ(RunsFromEnvironment(1000), 100U);
  EXPECT_EQ(Seeds::FromEnvironment(500).count, 50U);
}

TEST_F(RandomRuns, TheSeedMovesAllRunsAndReplaysNone) {
  Set("H2D_SEED", "2");
  const Seeds seeds = Seeds::FromEnvironment(500);
  EXPECT_EQ(seeds.count, 500U);
  EXPECT_GT(seeds.first, Seeds::FromEnvironment(500).count);
  EXPECT_FALSE(seeds.replay);
}

TEST_F(RandomRuns, AReplayNamesAPlanOrASeedAndNotBoth) {
  Set("H2D_REPLAY", "h2d1:AA");
  EXPECT_EQ(ReplayedPlan(), "h2d1:AA");
  EXPECT_FALSE(Seeds::FromEnvironment(500).replay);
  Set("H2D_REPLAY", "seed:77");
  EXPECT_FALSE(ReplayedPlan().has_value());
  EXPECT_TRUE(Seeds::FromEnvironment(500).replay);
  EXPECT_EQ(Seeds::FromEnvironment(500).first, 77U);
  EXPECT_EQ(Seeds::FromEnvironment(500).count, 1U);
  EXPECT_EQ(HowToReplay(77), "replay with H2D_REPLAY=seed:77");
}

}  // namespace
}  // namespace h2d::testing
