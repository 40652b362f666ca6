#include "h2d/device/host/pinned_cache.h"

#include <new>
#include <string>
#include <vector>

#include "h2d/device/pinned_buffer.h"

namespace h2d {
namespace {

constexpr std::align_val_t kAlignment{PinnedBuffer::kAlignment};

// Memory that was leaked on purpose stays reachable, so that leak checkers keep quiet about it. The
// list is never destroyed: handles may die after static objects do.
void KeepReachable(std::byte* data) {
  static auto* const mutex = new Mutex;
  static auto* const kept = new std::vector<std::byte*>;
  const MutexLock lock(*mutex);
  kept->push_back(data);
}

}  // namespace

HostPinnedCache::~HostPinnedCache() {
  const MutexLock lock(mutex_);
  FreeIdle();
  for (const auto& [data, block] : blocks_) KeepReachable(data);
}

Expected<std::byte*> HostPinnedCache::Take(uint64_t bytes) {
  const MutexLock lock(mutex_);
  if (std::byte* const idle = TakeIdle(bytes)) return idle;
  const uint64_t in_use = held_bytes_ - idle_bytes_;
  if (bytes > max_bytes_ - in_use) {
    return ResourceExhausted("Pinned memory of " + std::to_string(bytes) +
                             " bytes cannot be allocated: " + std::to_string(in_use) +
                             " bytes of at most " + std::to_string(max_bytes_) +
                             " (max_pinned_bytes) are in use.");
  }
  if (bytes > max_bytes_ - held_bytes_) FreeIdle();
  auto* const data = static_cast<std::byte*>(::operator new(bytes, kAlignment, std::nothrow));
  if (data == nullptr) {
    return ResourceExhausted("Pinned memory of " + std::to_string(bytes) +
                             " bytes cannot be allocated: the machine has no more.");
  }
  blocks_.emplace(data, Block{bytes, false});
  held_bytes_ += bytes;
  return data;
}

void HostPinnedCache::Return(std::byte* data) noexcept {
  const MutexLock lock(mutex_);
  Block& block = blocks_.find(data)->second;
  block.idle = true;
  idle_bytes_ += block.bytes;
}

void HostPinnedCache::Trim() noexcept {
  const MutexLock lock(mutex_);
  FreeIdle();
}

bool HostPinnedCache::Contains(std::span<const std::byte> memory) const noexcept {
  if (memory.empty()) return false;
  const MutexLock lock(mutex_);
  // The last block that starts at or before the first byte is the only one that can hold it.
  auto after = blocks_.upper_bound(const_cast<std::byte*>(memory.data()));
  if (after == blocks_.begin()) return false;
  const auto& [data, block] = *--after;
  const auto offset =
      reinterpret_cast<uintptr_t>(memory.data()) - reinterpret_cast<uintptr_t>(data);
  return offset < block.bytes && memory.size() <= block.bytes - offset;
}

uint64_t HostPinnedCache::held_bytes() const noexcept {
  const MutexLock lock(mutex_);
  return held_bytes_;
}

std::byte* HostPinnedCache::TakeIdle(uint64_t bytes) noexcept {
  for (auto& [data, block] : blocks_) {
    if (!block.idle || block.bytes != bytes) continue;
    block.idle = false;
    idle_bytes_ -= bytes;
    return data;
  }
  return nullptr;
}

void HostPinnedCache::FreeIdle() noexcept {
  for (auto it = blocks_.begin(); it != blocks_.end();) {
    if (!it->second.idle) {
      ++it;
      continue;
    }
    ::operator delete(it->first, kAlignment);
    held_bytes_ -= it->second.bytes;
    it = blocks_.erase(it);
  }
  idle_bytes_ = 0;
}

}  // namespace h2d
