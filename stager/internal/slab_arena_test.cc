#include "h2d/stager/internal/slab_arena.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace h2d::internal {
namespace {

constexpr uint64_t kBlock = SlabArena::kBlockBytes;

// Hands out addresses that are never touched, and remembers what came back.
class PretendMemory : public HandleOwner, public std::enable_shared_from_this<PretendMemory> {
 public:
  PinnedBuffer Make(uint64_t bytes) {
    auto* data = reinterpret_cast<std::byte*>(next_);
    next_ += bytes + kBlock;
    return PinnedBuffer::ForBackend(shared_from_this(), data, bytes);
  }
  void DestroyEvent(uint64_t) noexcept override {}
  void ReleasePinned(std::byte*, uint64_t bytes) noexcept override { released += bytes; }

  uint64_t released = 0;

 private:
  uintptr_t next_ = 1 << 20;
};

std::shared_ptr<PretendMemory> NewMemory() { return std::make_shared<PretendMemory>(); }

TEST(SlabArenaTest, NeighbouringFreeRunsMergeSoThatSizesDoNotStrandMemory) {
  const auto memory = NewMemory();
  SlabArena arena(8);
  arena.AddSlab(memory->Make(8 * kBlock));
  std::vector<BlockRun> runs;
  for (int i = 0; i < 8; ++i) runs.push_back(*arena.Take(1));
  EXPECT_FALSE(arena.Take(1));
  for (const int i : {1, 3, 5, 7, 0, 2, 4, 6}) arena.GiveBack(runs[static_cast<size_t>(i)]);
  EXPECT_TRUE(arena.Take(8 * kBlock));
}

TEST(SlabArenaTest, TakesWhatFitsExactlyAndRefusesOneByteMore) {
  const auto memory = NewMemory();
  SlabArena arena(8);
  arena.AddSlab(memory->Make(4 * kBlock));
  EXPECT_TRUE(arena.Fits(4 * kBlock));
  EXPECT_FALSE(arena.Fits(4 * kBlock + 1));
  EXPECT_FALSE(arena.Take(4 * kBlock + 1));
  EXPECT_TRUE(arena.Take(4 * kBlock));
  EXPECT_FALSE(arena.Fits(1));
}

TEST(SlabArenaTest, OnlyIdleSlabsAreRemoved) {
  const auto memory = NewMemory();
  SlabArena arena(8);
  arena.AddSlab(memory->Make(kBlock));
  arena.AddSlab(memory->Make(2 * kBlock));
  const BlockRun run = *arena.Take(2 * kBlock);
  EXPECT_EQ(arena.idle_bytes(), kBlock);
  EXPECT_EQ(arena.RemoveIdleSlab()->bytes().size(), kBlock);
  EXPECT_FALSE(arena.RemoveIdleSlab());
  EXPECT_EQ(arena.pinned_bytes(), 2 * kBlock);
  arena.GiveBack(run);
  EXPECT_EQ(arena.RemoveIdleSlab()->bytes().size(), 2 * kBlock);
  EXPECT_EQ(arena.pinned_bytes(), 0u);
  arena.AddSlab(memory->Make(kBlock));
  EXPECT_TRUE(arena.Take(1));
}

TEST(SlabArenaTest, LeaksWhatIsTakenWhenItDiesAndReleasesTheRest) {
  const auto memory = NewMemory();
  {
    SlabArena arena(8);
    arena.AddSlab(memory->Make(kBlock));
    arena.AddSlab(memory->Make(2 * kBlock));
    ASSERT_TRUE(arena.Take(2 * kBlock));
  }
  EXPECT_EQ(memory->released, kBlock);
}

// Against a model that remembers each taken byte.
TEST(SlabArenaTest, RandomUseNeverOverlapsAndAlwaysComesBackWhole) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const auto memory = NewMemory();
    SlabArena arena(32);
    arena.AddSlab(memory->Make(16 * kBlock));
    arena.AddSlab(memory->Make(24 * kBlock));
    std::map<std::byte*, BlockRun> taken;
    std::set<std::byte*> blocks;
    for (int step = 0; step < 300; ++step) {
      if (taken.size() < 32 && random() % 2 == 0) {
        const uint64_t bytes = 1 + random() % (6 * kBlock);
        const bool fits = arena.Fits(bytes);
        const auto run = arena.Take(bytes);
        ASSERT_EQ(run.has_value(), fits) << "seed " << seed;
        if (!run) continue;
        const auto span = arena.BytesOf(*run, bytes);
        taken.emplace(span.data(), *run);
        for (uint64_t at = 0; at < bytes; at += kBlock) {
          ASSERT_TRUE(blocks.insert(span.data() + at).second) << "seed " << seed;
        }
      } else if (!taken.empty()) {
        auto it = std::next(taken.begin(), static_cast<long>(random() % taken.size()));
        for (uint64_t i = 0; i < it->second.blocks; ++i) blocks.erase(it->first + i * kBlock);
        arena.GiveBack(it->second);
        taken.erase(it);
      }
    }
    for (const auto& [data, run] : taken) arena.GiveBack(run);
    ASSERT_EQ(arena.idle_bytes(), 40 * kBlock) << "seed " << seed;
    ASSERT_TRUE(arena.Fits(24 * kBlock)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace h2d::internal
