// Memory that is allocated once and handed out again and again, within a limit in bytes.
#ifndef H2D_DEVICE_HOST_PINNED_CACHE_H_
#define H2D_DEVICE_HOST_PINNED_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>

#include "h2d/device/error.h"
#include "h2d/device/sync.h"

namespace h2d {

// Blocks are handed out again for requests of just their size: a staging ring asks for few sizes,
// and an exact block lets an address sanitizer see the first byte past its end.
//
// Thread-safe. Searches all blocks: for growth, not for a step's path.
class HostPinnedCache {
 public:
  explicit HostPinnedCache(uint64_t max_bytes) noexcept : max_bytes_(max_bytes) {}
  // Frees what is idle. What is still in use was leaked on purpose, and is never freed.
  ~HostPinnedCache();
  HostPinnedCache(const HostPinnedCache&) = delete;
  HostPinnedCache& operator=(const HostPinnedCache&) = delete;

  // `bytes` (not 0) bytes, aligned as `PinnedBuffer` promises. Idle memory of other sizes is freed
  // when the limit would otherwise be passed. Errors: `kResourceExhausted`.
  [[nodiscard]] Expected<std::byte*> Take(uint64_t bytes) H2D_EXCLUDES(mutex_);

  // Makes a taken block idle.
  void Return(std::byte* data) noexcept H2D_EXCLUDES(mutex_);

  // Frees what is idle.
  void Trim() noexcept H2D_EXCLUDES(mutex_);

  // Whether one block, idle ones included, holds all of `memory`; nothing is held by none.
  bool Contains(std::span<const std::byte> memory) const noexcept H2D_EXCLUDES(mutex_);

  // The bytes held, in use and idle.
  uint64_t held_bytes() const noexcept H2D_EXCLUDES(mutex_);

 private:
  struct Block {
    uint64_t bytes;
    bool idle;
  };
  using Blocks = std::map<std::byte*, Block>;

  std::byte* TakeIdle(uint64_t bytes) noexcept H2D_REQUIRES(mutex_);
  void FreeIdle() noexcept H2D_REQUIRES(mutex_);

  const uint64_t max_bytes_;
  mutable Mutex mutex_;
  Blocks blocks_ H2D_GUARDED_BY(mutex_);
  uint64_t held_bytes_ H2D_GUARDED_BY(mutex_) = 0;
  uint64_t idle_bytes_ H2D_GUARDED_BY(mutex_) = 0;  // part of held_bytes_
};

}  // namespace h2d

#endif  // H2D_DEVICE_HOST_PINNED_CACHE_H_
