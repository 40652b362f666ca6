#include "h2d/device/cuda/pinned_cache.h"

#include <algorithm>
#include <bit>

#include "h2d/device/checked_size.h"

namespace h2d::internal {

std::optional<uint64_t> PinnedCache::BlockBytes(uint64_t bytes) noexcept {
  constexpr uint64_t kPageBytes = 4096;
  return RoundedUp(bytes, std::max(kPageBytes, std::bit_floor(bytes) / 8));
}

std::byte* PinnedCache::TakeIdle(uint64_t block_bytes, Fit fit) noexcept {
  const MutexLock lock(mutex_);
  Block* best = nullptr;
  for (Block& block : blocks_) {
    if (!block.idle || block.bytes < block_bytes) continue;
    if (fit == Fit::kUpToTwice && block.bytes / 2 > block_bytes) continue;
    if (best == nullptr || block.bytes < best->bytes) best = &block;
  }
  if (best == nullptr) return nullptr;
  best->idle = false;
  idle_bytes_ -= best->bytes;
  return best->data;
}

bool PinnedCache::Reserve(uint64_t block_bytes) {
  const MutexLock lock(mutex_);
  if (block_bytes > max_bytes_ || owned_bytes_ > max_bytes_ - block_bytes) return false;
  blocks_.reserve(blocks_.size() + reserved_blocks_ + 1);  // `Added` cannot fail
  ++reserved_blocks_;
  owned_bytes_ += block_bytes;
  return true;
}

void PinnedCache::Added(std::byte* data, uint64_t block_bytes) noexcept {
  const MutexLock lock(mutex_);
  --reserved_blocks_;
  blocks_.push_back(Block{data, block_bytes, /*idle=*/false});
}

void PinnedCache::NotAdded(uint64_t block_bytes) noexcept {
  const MutexLock lock(mutex_);
  --reserved_blocks_;
  owned_bytes_ -= block_bytes;
}

void PinnedCache::Release(std::byte* data) noexcept {
  const MutexLock lock(mutex_);
  const auto block = std::ranges::find(blocks_, data, &Block::data);
  if (block == blocks_.end() || block->idle) return;
  block->idle = true;
  idle_bytes_ += block->bytes;
}

std::vector<std::byte*> PinnedCache::TakeAllIdle() {
  const MutexLock lock(mutex_);
  std::vector<std::byte*> taken;
  taken.reserve(blocks_.size());
  for (Block& block : blocks_) {
    if (!block.idle) continue;
    block.idle = false;
    taken.push_back(block.data);
  }
  idle_bytes_ = 0;
  return taken;
}

void PinnedCache::Freed(std::byte* data) noexcept {
  const MutexLock lock(mutex_);
  const auto block = std::ranges::find(blocks_, data, &Block::data);
  if (block == blocks_.end() || block->idle) return;
  owned_bytes_ -= block->bytes;
  blocks_.erase(block);
}

uint64_t PinnedCache::owned_bytes() const noexcept {
  const MutexLock lock(mutex_);
  return owned_bytes_;
}

uint64_t PinnedCache::idle_bytes() const noexcept {
  const MutexLock lock(mutex_);
  return idle_bytes_;
}

}  // namespace h2d::internal
