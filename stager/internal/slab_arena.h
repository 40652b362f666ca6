// The ring's pinned memory: a few slabs, divided into blocks, of which a slot takes a run.
#ifndef H2D_STAGER_INTERNAL_SLAB_ARENA_H_
#define H2D_STAGER_INTERNAL_SLAB_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "h2d/device/checked_size.h"
#include "h2d/device/pinned_buffer.h"

namespace h2d::internal {

// A run of blocks of one slab. A default run has no memory.
struct BlockRun {
  uint32_t slab = 0;
  uint32_t first_block = 0;
  uint32_t blocks = 0;
};

// Hands out the first run that fits, beginning with the slab last used, and merges neighbouring
// free runs, so that memory does not strand in the size it was last used in (I10). Taking and
// giving back never allocate. Not thread-safe: the ring's lock guards it.
class SlabArena {
 public:
  static constexpr uint64_t kBlockBytes = PinnedBuffer::kAlignment;

  // Room for up to `max_runs` runs taken at once.
  explicit SlabArena(uint32_t max_runs) noexcept : max_runs_(max_runs) {}

  // Leaks the slabs that still have a run taken: a copy may read them (I9).
  ~SlabArena();
  SlabArena(const SlabArena&) = delete;
  SlabArena& operator=(const SlabArena&) = delete;

  void AddSlab(PinnedBuffer memory);

  // A run of at least `bytes` bytes (not 0), or nothing when no slab has one.
  std::optional<BlockRun> Take(uint64_t bytes) noexcept;
  bool Fits(uint64_t bytes) const noexcept;
  // How many runs of `bytes` bytes (not 0) could be taken.
  uint64_t RoomFor(uint64_t bytes) const noexcept;
  void GiveBack(const BlockRun& run) noexcept;
  std::span<std::byte> BytesOf(const BlockRun& run, uint64_t bytes) const noexcept;

  // Removes one slab of which no run is taken and hands it out, or nothing when there is none.
  std::optional<PinnedBuffer> RemoveIdleSlab() noexcept;

  uint64_t pinned_bytes() const noexcept { return pinned_bytes_; }
  // Of the slabs that `RemoveIdleSlab` could remove.
  uint64_t idle_bytes() const noexcept;

 private:
  struct FreeRun {
    uint32_t first_block;
    uint32_t blocks;
  };
  struct Slab {
    std::optional<PinnedBuffer> memory;  // none: removed, its place is taken by the next slab
    std::byte* data = nullptr;
    uint32_t blocks = 0;
    uint32_t free_blocks = 0;
    std::vector<FreeRun> free;  // sorted by position, no two touch; capacity for the worst case

    bool idle() const noexcept { return memory && free_blocks == blocks; }
  };

  std::optional<BlockRun> TakeFrom(uint32_t slab, uint32_t blocks) noexcept;

  const uint32_t max_runs_;
  uint64_t pinned_bytes_ = 0;
  uint32_t next_slab_ = 0;  // where the next search begins
  std::vector<Slab> slabs_;
};

// How many blocks `bytes` bytes take.
constexpr uint64_t BlocksOf(uint64_t bytes) noexcept {
  return bytes / SlabArena::kBlockBytes + (bytes % SlabArena::kBlockBytes != 0 ? 1 : 0);
}

// `bytes` in whole blocks; the largest number when 64 bits cannot hold it.
constexpr uint64_t InBlocks(uint64_t bytes) noexcept {
  return RoundedUp(bytes, SlabArena::kBlockBytes).value_or(~uint64_t{0});
}

}  // namespace h2d::internal

#endif  // H2D_STAGER_INTERNAL_SLAB_ARENA_H_
