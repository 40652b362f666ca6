// What kind of host memory a copy reads from.
#ifndef H2D_DEVICE_MEMORY_KIND_H_
#define H2D_DEVICE_MEMORY_KIND_H_

#include <cstdint>
#include <string_view>

namespace h2d {

enum class MemoryKind : uint8_t {
  kPageable,    // ordinary memory: malloc, the stack
  kPinned,      // page-locked: the device reads it directly, at any time until the copy completed
  kFileBacked,  // a mapping of a file: touching it may read from storage
};

constexpr std::string_view ToString(MemoryKind kind) noexcept {
  switch (kind) {
    case MemoryKind::kPageable:
      return "pageable";
    case MemoryKind::kPinned:
      return "pinned";
    case MemoryKind::kFileBacked:
      return "file-backed";
  }
  return "unknown";
}

}  // namespace h2d

#endif  // H2D_DEVICE_MEMORY_KIND_H_
