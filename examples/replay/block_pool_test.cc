#include "h2d/examples/replay/block_pool.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace h2d::replay {
namespace {

TEST(BlockPoolTest, EveryBlockIsHandedOutOnce) {
  BlockPool pool(5);
  std::vector<int32_t> a;
  std::vector<int32_t> b;
  EXPECT_TRUE(pool.Grow(a, 2));
  EXPECT_TRUE(pool.Grow(b, 3));
  EXPECT_EQ(pool.free(), 0U);
  std::set<int32_t> all(a.begin(), a.end());
  all.insert(b.begin(), b.end());
  EXPECT_EQ(all, (std::set<int32_t>{0, 1, 2, 3, 4}));
}

TEST(BlockPoolTest, TooFewBlocksChangeNothing) {
  BlockPool pool(3);
  std::vector<int32_t> owned;
  EXPECT_TRUE(pool.Grow(owned, 2));
  const std::vector<int32_t> before = owned;
  EXPECT_FALSE(pool.Grow(owned, 4));
  EXPECT_EQ(owned, before);
  EXPECT_EQ(pool.free(), 1U);
  EXPECT_TRUE(pool.Grow(owned, 1));  // it has them already
  EXPECT_EQ(owned, before);
}

TEST(BlockPoolTest, ReleasedBlocksCanBeHadAgain) {
  BlockPool pool(2);
  std::vector<int32_t> owned;
  EXPECT_TRUE(pool.Grow(owned, 2));
  pool.Release(owned);
  EXPECT_TRUE(owned.empty());
  EXPECT_EQ(pool.free(), 2U);
  EXPECT_TRUE(pool.Grow(owned, 2));
  EXPECT_NE(owned[0], owned[1]);
}

TEST(BlockPoolTest, AStartedBlockCountsAsAWholeOne) {
  EXPECT_EQ(BlocksFor(0, 16), 0U);
  EXPECT_EQ(BlocksFor(1, 16), 1U);
  EXPECT_EQ(BlocksFor(16, 16), 1U);
  EXPECT_EQ(BlocksFor(17, 16), 2U);
}

}  // namespace
}  // namespace h2d::replay
