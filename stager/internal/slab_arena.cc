#include "h2d/stager/internal/slab_arena.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace h2d::internal {

SlabArena::~SlabArena() {
  for (Slab& slab : slabs_) {
    if (slab.memory && !slab.idle()) slab.memory->Leak();
  }
}

void SlabArena::AddSlab(PinnedBuffer memory) {
  auto place = std::find_if(slabs_.begin(), slabs_.end(), [](const Slab& s) { return !s.memory; });
  if (place == slabs_.end()) place = slabs_.emplace(slabs_.end());
  const std::span<std::byte> bytes = memory.bytes();
  place->data = bytes.data();
  place->blocks = static_cast<uint32_t>(bytes.size() / kBlockBytes);
  place->free_blocks = place->blocks;
  place->free.clear();
  // Between and around `max_runs_` taken runs lie at most one more free ones.
  place->free.reserve(max_runs_ + size_t{2});
  place->free.push_back({0, place->blocks});
  place->memory.emplace(std::move(memory));
  pinned_bytes_ += bytes.size();
}

std::optional<BlockRun> SlabArena::Take(uint64_t bytes) noexcept {
  const uint64_t wanted = BlocksOf(bytes);
  if (wanted > std::numeric_limits<uint32_t>::max()) return std::nullopt;
  const auto slabs = static_cast<uint32_t>(slabs_.size());
  for (uint32_t i = 0; i < slabs; ++i) {
    const uint32_t slab = next_slab_ + i < slabs ? next_slab_ + i : next_slab_ + i - slabs;
    if (auto run = TakeFrom(slab, static_cast<uint32_t>(wanted))) {
      next_slab_ = slab;
      return run;
    }
  }
  return std::nullopt;
}

std::optional<BlockRun> SlabArena::TakeFrom(uint32_t slab, uint32_t blocks) noexcept {
  Slab& from = slabs_[slab];
  if (!from.memory || from.free_blocks < blocks) return std::nullopt;
  for (auto run = from.free.begin(); run != from.free.end(); ++run) {
    if (run->blocks < blocks) continue;
    const BlockRun taken{slab, run->first_block, blocks};
    run->first_block += blocks;
    run->blocks -= blocks;
    if (run->blocks == 0) from.free.erase(run);
    from.free_blocks -= blocks;
    return taken;
  }
  return std::nullopt;
}

bool SlabArena::Fits(uint64_t bytes) const noexcept {
  const uint64_t wanted = BlocksOf(bytes);
  return std::any_of(slabs_.begin(), slabs_.end(), [wanted](const Slab& slab) {
    return slab.memory && std::any_of(slab.free.begin(), slab.free.end(),
                                      [wanted](FreeRun run) { return run.blocks >= wanted; });
  });
}

uint64_t SlabArena::RoomFor(uint64_t bytes) const noexcept {
  const uint64_t wanted = BlocksOf(bytes);
  uint64_t runs = 0;
  for (const Slab& slab : slabs_) {
    if (!slab.memory) continue;
    for (const FreeRun& run : slab.free) runs += run.blocks / wanted;
  }
  return runs;
}

uint64_t SlabArena::idle_bytes() const noexcept {
  uint64_t bytes = 0;
  for (const Slab& slab : slabs_) {
    if (slab.idle()) bytes += slab.memory->bytes().size();
  }
  return bytes;
}

void SlabArena::GiveBack(const BlockRun& run) noexcept {
  if (run.blocks == 0) return;
  Slab& slab = slabs_[run.slab];
  slab.free_blocks += run.blocks;
  const auto after = std::lower_bound(
      slab.free.begin(), slab.free.end(), run.first_block,
      [](const FreeRun& free, uint32_t block) { return free.first_block < block; });
  const bool joins_before =
      after != slab.free.begin() &&
      std::prev(after)->first_block + std::prev(after)->blocks == run.first_block;
  const bool joins_after =
      after != slab.free.end() && run.first_block + run.blocks == after->first_block;
  if (joins_before) {
    std::prev(after)->blocks += run.blocks + (joins_after ? after->blocks : 0);
    if (joins_after) slab.free.erase(after);
  } else if (joins_after) {
    after->first_block = run.first_block;
    after->blocks += run.blocks;
  } else {
    slab.free.insert(after, {run.first_block, run.blocks});
  }
}

std::span<std::byte> SlabArena::BytesOf(const BlockRun& run, uint64_t bytes) const noexcept {
  return {slabs_[run.slab].data + run.first_block * kBlockBytes, bytes};
}

std::optional<PinnedBuffer> SlabArena::RemoveIdleSlab() noexcept {
  for (Slab& slab : slabs_) {
    if (!slab.idle()) continue;
    std::optional<PinnedBuffer> memory(std::move(*slab.memory));
    slab.memory.reset();
    pinned_bytes_ -= memory->bytes().size();
    return memory;
  }
  return std::nullopt;
}

}  // namespace h2d::internal
