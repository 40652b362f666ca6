// The books of a device's pinned memory: which blocks there are, and which are idle.
#ifndef H2D_DEVICE_CUDA_PINNED_CACHE_H_
#define H2D_DEVICE_CUDA_PINNED_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "h2d/device/sync.h"

namespace h2d::internal {

// The driver's free waits for everything that the device has to do (18.6 ms behind 20 ms of work on
// an H200), so blocks that are given back stay here until `TakeAllIdle`. Calls no driver: whoever
// uses it allocates and frees.
//
// Thread-safe. Releasing a block allocates nothing. Blocks are few (slabs and chunks, not slots),
// so a look through all of them is cheap.
class PinnedCache {
 public:
  // Owns at most `max_bytes`, in use and idle together.
  explicit PinnedCache(uint64_t max_bytes) noexcept : max_bytes_(max_bytes) {}

  // The size of the block that serves `bytes` bytes: whole pages, and at most an eighth more, so
  // that requests of similar sizes share blocks. Nothing when 64 bits cannot hold it.
  static std::optional<uint64_t> BlockBytes(uint64_t bytes) noexcept;

  // How much larger than asked for an idle block may be.
  enum class Fit : uint8_t { kUpToTwice, kAnyLarger };

  // Takes the smallest idle block of at least `block_bytes`; null when there is none that fits.
  std::byte* TakeIdle(uint64_t block_bytes, Fit fit) noexcept;

  // Books a block that is about to be allocated; false, and nothing booked, beyond the limit.
  // `Added` or `NotAdded` follows.
  [[nodiscard]] bool Reserve(uint64_t block_bytes);
  void Added(std::byte* data, uint64_t block_bytes) noexcept;
  void NotAdded(uint64_t block_bytes) noexcept;

  // Makes the block at `data` idle. REQUIRES: it is in use.
  void Release(std::byte* data) noexcept;

  // Takes all idle blocks, to be freed. They count as owned and in use until each was either freed,
  // which `Freed` says, or not, after which `Release` makes it idle again.
  std::vector<std::byte*> TakeAllIdle();
  // Forgets the block at `data`. REQUIRES: it is in use.
  void Freed(std::byte* data) noexcept;

  uint64_t max_bytes() const noexcept { return max_bytes_; }
  uint64_t owned_bytes() const noexcept;
  uint64_t idle_bytes() const noexcept;

 private:
  struct Block {
    std::byte* data;
    uint64_t bytes;
    bool idle;
  };

  const uint64_t max_bytes_;
  mutable Mutex mutex_;
  std::vector<Block> blocks_ H2D_GUARDED_BY(mutex_);
  uint64_t reserved_blocks_ H2D_GUARDED_BY(mutex_) = 0;
  uint64_t owned_bytes_ H2D_GUARDED_BY(mutex_) = 0;  // reserved ones included
  uint64_t idle_bytes_ H2D_GUARDED_BY(mutex_) = 0;
};

}  // namespace h2d::internal

#endif  // H2D_DEVICE_CUDA_PINNED_CACHE_H_
