#include "h2d/stager/staging.h"

#include <gtest/gtest.h>

#include <limits>

namespace h2d {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

TEST(StagingTest, PageableGoesThroughPinnedBelow100MiBAndNotAtIt) {
  EXPECT_TRUE(Staging::Of(0, MemoryKind::kPageable).through_pinned);
  EXPECT_TRUE(Staging::Of(104'857'599, MemoryKind::kPageable).through_pinned);
  EXPECT_FALSE(Staging::Of(104'857'600, MemoryKind::kPageable).through_pinned);
}

TEST(StagingTest, PinnedNeverAndFileBackedAlwaysGoesThroughPinned) {
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, 100 * kMiB, 1000 * kMiB}) {
    EXPECT_FALSE(Staging::Of(bytes, MemoryKind::kPinned).through_pinned) << bytes;
    EXPECT_TRUE(Staging::Of(bytes, MemoryKind::kFileBacked).through_pinned) << bytes;
  }
}

TEST(StagingTest, FlushesAbove10MiBAndNotAtIt) {
  for (const MemoryKind kind : {MemoryKind::kPageable, MemoryKind::kPinned}) {
    EXPECT_FALSE(Staging::Of(10'485'760, kind).flush_after) << ToString(kind);
    EXPECT_TRUE(Staging::Of(10'485'761, kind).flush_after) << ToString(kind);
  }
}

TEST(StagingTest, FileBackedIsAlwaysFlushed) {
  EXPECT_TRUE(Staging::Of(1, MemoryKind::kFileBacked).flush_after);
}

TEST(StagingTest, PipelinedHasNoUpperBorder) {
  const StagingPolicy policy = StagingPolicy::Pipelined();
  EXPECT_TRUE(Staging::Of(uint64_t{1} << 60, MemoryKind::kPageable, policy).through_pinned);
  EXPECT_FALSE(Staging::Of(uint64_t{1} << 60, MemoryKind::kPinned, policy).through_pinned);
}

TEST(StagingTest, ThresholdsAreFields) {
  const StagingPolicy policy{.pageable_through_pinned_below_bytes = 8, .flush_above_bytes = 4};
  EXPECT_EQ(Staging::Of(7, MemoryKind::kPageable, policy), (Staging{true, true}));
  EXPECT_EQ(Staging::Of(8, MemoryKind::kPageable, policy), (Staging{false, true}));
  EXPECT_EQ(Staging::Of(4, MemoryKind::kPageable, policy), (Staging{true, false}));
}

TEST(StagingTest, PageableBelowTheLowerBorderGoesDirectlyAndAtItThroughPinned) {
  StagingPolicy policy = StagingPolicy::Pipelined();
  EXPECT_EQ(policy.pageable_through_pinned_from_bytes, 0U);
  policy.pageable_through_pinned_from_bytes = 24'577;
  EXPECT_FALSE(Staging::Of(24'576, MemoryKind::kPageable, policy).through_pinned);
  EXPECT_TRUE(Staging::Of(24'577, MemoryKind::kPageable, policy).through_pinned);
  EXPECT_FALSE(Staging::Of(24'577, MemoryKind::kPinned, policy).through_pinned);
  EXPECT_TRUE(Staging::Of(1, MemoryKind::kFileBacked, policy).through_pinned);
}

TEST(StagingTest, KnownGoodIsTheDefault) { EXPECT_EQ(StagingPolicy::KnownGood(), StagingPolicy{}); }

}  // namespace
}  // namespace h2d
