// Host memory whose size a caller chose, and which may therefore not be there.
#ifndef H2D_STAGER_INTERNAL_HOST_BYTES_H_
#define H2D_STAGER_INTERNAL_HOST_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "h2d/device/error.h"

namespace h2d::internal {

struct FreeBytes {
  void operator()(std::byte* bytes) const noexcept { std::free(bytes); }
};

// Owned memory of arbitrary content, at a multiple of `kHostBytesAlignment`. Unlike a vector it
// neither throws nor touches its pages when it is made.
using HostBytes = std::unique_ptr<std::byte[], FreeBytes>;

// More than any host has for a mirror: refused without asking, because an allocator that checks its
// callers (a sanitizer's) ends the process over such a size.
inline constexpr uint64_t kMaxHostBytes = uint64_t{1} << 39;

// Comparing takes two fifths longer when the two lie differently within 32 bytes (measured with
// glibc's memcmp): a caller whose values are aligned as well is spared that.
inline constexpr uint64_t kHostBytesAlignment = 64;

// Errors: `bytes` (not 0) is above `kMaxHostBytes`, or the host has not that many.
inline Expected<HostBytes> AllocateHostBytes(uint64_t bytes) {
  HostBytes memory;
  if (bytes <= kMaxHostBytes) {
    const uint64_t whole = (bytes + kHostBytesAlignment - 1) & ~(kHostBytesAlignment - 1);
    memory.reset(static_cast<std::byte*>(std::aligned_alloc(kHostBytesAlignment, whole)));
  }
  if (memory == nullptr) {
    return ResourceExhausted("The host has no " + std::to_string(bytes) +
                             " bytes of memory for what a mirror knows of its destination.");
  }
  return memory;
}

}  // namespace h2d::internal

#endif  // H2D_STAGER_INTERNAL_HOST_BYTES_H_
