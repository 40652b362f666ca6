#include "h2d/device/host/pinned_cache.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

namespace h2d {
namespace {

TEST(HostPinnedCache, AReturnedBlockIsHandedOutAgainForItsSizeOnly) {
  HostPinnedCache cache(1000);
  std::byte* const block = *cache.Take(100);
  cache.Return(block);
  EXPECT_NE(*cache.Take(99), block);
  EXPECT_EQ(*cache.Take(100), block);
  EXPECT_EQ(cache.held_bytes(), 199u);
}

TEST(HostPinnedCache, ABlockInUseIsNotHandedOutTwice) {
  HostPinnedCache cache(1000);
  EXPECT_NE(*cache.Take(100), *cache.Take(100));
}

TEST(HostPinnedCache, TheLimitCanBeReachedAndNotPassed) {
  HostPinnedCache cache(1000);
  ASSERT_TRUE(cache.Take(600));
  const Expected<std::byte*> beyond = cache.Take(401);
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().code, ErrorCode::kResourceExhausted);
  EXPECT_EQ(beyond.error().message,
            "Pinned memory of 401 bytes cannot be allocated: 600 bytes of at most 1000 "
            "(max_pinned_bytes) are in use.");
  EXPECT_TRUE(cache.Take(400));
}

TEST(HostPinnedCache, ASizeThatWouldOverflowTheSumIsRefused) {
  HostPinnedCache cache(1000);
  ASSERT_TRUE(cache.Take(1));
  EXPECT_FALSE(cache.Take(std::numeric_limits<uint64_t>::max()));
}

TEST(HostPinnedCache, IdleMemoryOfOneSizeGivesWayToAnotherSize) {
  HostPinnedCache cache(1000);
  cache.Return(*cache.Take(600));
  ASSERT_TRUE(cache.Take(300));
  EXPECT_EQ(cache.held_bytes(), 900u);
  ASSERT_TRUE(cache.Take(700));
  EXPECT_EQ(cache.held_bytes(), 1000u);
}

TEST(HostPinnedCache, ARequestBeyondTheLimitLeavesIdleMemoryInPlace) {
  HostPinnedCache cache(1000);
  cache.Return(*cache.Take(600));
  EXPECT_FALSE(cache.Take(1001));
  EXPECT_EQ(cache.held_bytes(), 600u);
}

TEST(HostPinnedCache, TrimFreesWhatIsIdleAndNothingElse) {
  HostPinnedCache cache(1000);
  std::byte* const used = *cache.Take(100);
  cache.Return(*cache.Take(200));
  cache.Trim();
  EXPECT_EQ(cache.held_bytes(), 100u);
  ASSERT_TRUE(cache.Take(900));
  EXPECT_FALSE(cache.Take(1)) << "what was freed counted twice";
  std::memset(used, 1, 100);  // an address sanitizer would object if it were freed
}

TEST(HostPinnedCache, ContainsEveryByteOfABlockAndNoneBesides) {
  HostPinnedCache cache(1000);
  EXPECT_FALSE(cache.Contains({}));
  std::byte* const block = *cache.Take(100);
  EXPECT_FALSE(cache.Contains({block - 1, 2}));
  EXPECT_TRUE(cache.Contains({block, 100}));
  EXPECT_TRUE(cache.Contains({block + 99, 1}));
  EXPECT_FALSE(cache.Contains({block, 101}));
  EXPECT_FALSE(cache.Contains({block + 100, 1}));
  EXPECT_FALSE(cache.Contains({block, 0}));
  EXPECT_FALSE(cache.Contains({block + 1, ~size_t{0}}));
}

TEST(HostPinnedCache, MemoryStillInUseAtTheEndStaysReadable) {
  std::byte* leaked = nullptr;
  {
    HostPinnedCache cache(1000);
    leaked = *cache.Take(100);
    std::memset(leaked, 7, 100);
  }
  for (int i = 0; i < 100; ++i) EXPECT_EQ(leaked[i], std::byte{7});
}

}  // namespace
}  // namespace h2d
