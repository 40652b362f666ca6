#include "h2d/device/cuda/pinned_cache.h"

#include <array>
#include <cstdint>
#include <limits>

#include "gtest/gtest.h"

namespace h2d::internal {
namespace {

using Fit = PinnedCache::Fit;

constexpr uint64_t kKiB = 1024;

// Memory that only serves as a name here.
std::array<std::byte, 8> blocks;

void Add(PinnedCache& cache, std::byte* data, uint64_t bytes) {
  ASSERT_TRUE(cache.Reserve(bytes));
  cache.Added(data, bytes);
}

TEST(PinnedCacheTest, BlocksAreWholePagesAndAtMostAnEighthLarger) {
  EXPECT_EQ(PinnedCache::BlockBytes(1), 4 * kKiB);
  EXPECT_EQ(PinnedCache::BlockBytes(4 * kKiB), 4 * kKiB);
  EXPECT_EQ(PinnedCache::BlockBytes(kKiB * kKiB), kKiB * kKiB);
  EXPECT_EQ(PinnedCache::BlockBytes(kKiB * kKiB + 1), kKiB * kKiB / 8 * 9);
  EXPECT_EQ(PinnedCache::BlockBytes(std::numeric_limits<uint64_t>::max()), std::nullopt);
}

TEST(PinnedCacheTest, ABlockInUseIsNotHandedOutAgain) {
  PinnedCache cache(kKiB * kKiB);
  Add(cache, &blocks[0], 4 * kKiB);
  EXPECT_EQ(cache.TakeIdle(4 * kKiB, Fit::kAnyLarger), nullptr);
  cache.Release(&blocks[0]);
  EXPECT_EQ(cache.TakeIdle(4 * kKiB, Fit::kUpToTwice), &blocks[0]);
  EXPECT_EQ(cache.TakeIdle(4 * kKiB, Fit::kAnyLarger), nullptr);
}

TEST(PinnedCacheTest, TheSmallestIdleBlockThatFitsServes) {
  PinnedCache cache(kKiB * kKiB);
  Add(cache, &blocks[0], 16 * kKiB);
  Add(cache, &blocks[1], 8 * kKiB);
  Add(cache, &blocks[2], 4 * kKiB);
  for (int i = 0; i < 3; ++i) cache.Release(&blocks[i]);
  EXPECT_EQ(cache.TakeIdle(8 * kKiB, Fit::kAnyLarger), &blocks[1]);
}

TEST(PinnedCacheTest, AMuchLargerBlockServesOnlyWhenAskedFor) {
  PinnedCache cache(kKiB * kKiB);
  Add(cache, &blocks[0], 64 * kKiB);
  cache.Release(&blocks[0]);
  EXPECT_EQ(cache.TakeIdle(4 * kKiB, Fit::kUpToTwice), nullptr);
  EXPECT_EQ(cache.TakeIdle(4 * kKiB, Fit::kAnyLarger), &blocks[0]);
}

TEST(PinnedCacheTest, TheLimitCountsBlocksInUseIdleAndReserved) {
  PinnedCache cache(12 * kKiB);
  Add(cache, &blocks[0], 4 * kKiB);
  Add(cache, &blocks[1], 4 * kKiB);
  cache.Release(&blocks[1]);
  ASSERT_TRUE(cache.Reserve(4 * kKiB));
  EXPECT_FALSE(cache.Reserve(4 * kKiB));
  cache.NotAdded(4 * kKiB);
  EXPECT_TRUE(cache.Reserve(4 * kKiB));
  EXPECT_FALSE(cache.Reserve(std::numeric_limits<uint64_t>::max()));
}

TEST(PinnedCacheTest, FreedBlocksMakeRoomAndThoseInUseStay) {
  PinnedCache cache(8 * kKiB);
  Add(cache, &blocks[0], 4 * kKiB);
  Add(cache, &blocks[1], 4 * kKiB);
  cache.Release(&blocks[1]);
  EXPECT_EQ(cache.TakeAllIdle(), std::vector<std::byte*>{&blocks[1]});
  // Not free yet: nobody gets it, and it counts.
  EXPECT_EQ(cache.TakeIdle(4 * kKiB, Fit::kAnyLarger), nullptr);
  EXPECT_EQ(cache.idle_bytes(), 0U);
  EXPECT_FALSE(cache.Reserve(4 * kKiB));
  cache.Freed(&blocks[1]);
  EXPECT_EQ(cache.owned_bytes(), 4 * kKiB);
  EXPECT_TRUE(cache.Reserve(4 * kKiB));
  cache.Release(&blocks[0]);  // still known
  EXPECT_EQ(cache.idle_bytes(), 4 * kKiB);
}

TEST(PinnedCacheTest, ABlockThatCouldNotBeFreedIsIdleAgain) {
  PinnedCache cache(8 * kKiB);
  Add(cache, &blocks[0], 4 * kKiB);
  cache.Release(&blocks[0]);
  ASSERT_EQ(cache.TakeAllIdle().size(), 1U);
  cache.Release(&blocks[0]);
  EXPECT_EQ(cache.owned_bytes(), 4 * kKiB);
  EXPECT_EQ(cache.idle_bytes(), 4 * kKiB);
  EXPECT_EQ(cache.TakeIdle(4 * kKiB, Fit::kAnyLarger), &blocks[0]);
}

}  // namespace
}  // namespace h2d::internal
