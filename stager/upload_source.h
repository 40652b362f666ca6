// What an upload reads: memory, a mapping of a file, or a file.
#ifndef H2D_STAGER_UPLOAD_SOURCE_H_
#define H2D_STAGER_UPLOAD_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "h2d/device/element.h"
#include "h2d/stager/held_source.h"

namespace h2d {

// A view, unless an owner was given: the memory or the descriptor stays valid and unchanged until
// `Uploader::SourceReusable` says that it is no longer needed.
//
//   UploadSource::Memory(weights)                       // pageable or pinned: the device is asked
//   UploadSource::Pinned(staged)                        // pinned, as the caller knows
//   UploadSource::Mapping(mapped)                       // of a file: read by the host alone
//   UploadSource::File(descriptor, offset, bytes)       // read straight into pinned memory
//   UploadSource::Memory(pinned->bytes()).KeptAliveBy(h2d::HeldSource(std::move(*pinned)))
class UploadSource {
 public:
  enum class Kind : uint8_t { kMemory, kPinned, kMapping, kFile };

  // Ordinary or page-locked memory; page-locked when the device says so of all of it.
  template <HostRange Range>
  static UploadSource Memory(const Range& range) noexcept {
    return UploadSource(Kind::kMemory, std::as_bytes(std::span(range)));
  }

  // Page-locked memory, as whoever allocated it knows: nobody asks the device, which takes 0.1 us
  // and more of the 9 us that 64 KiB take. Memory that is not page-locked after all goes the
  // driver's own way, as under a policy that sends pageable memory directly.
  template <HostRange Range>
  static UploadSource Pinned(const Range& range) noexcept {
    return UploadSource(Kind::kPinned, std::as_bytes(std::span(range)));
  }

  // A mapping of a file, which only the caller can say: the device takes it for other pageable
  // memory, and to ask the system is to read all of /proc/self/maps, 0.06 ms with a hundred
  // mappings and 1.8 ms with three thousand, for an answer that the next `mmap` may outdate. Given
  // as memory, a mapping that a policy sends to the device directly faults its pages in under the
  // copy. When the file is truncated under the mapping, touching it is a SIGBUS, which no library
  // can turn into an error: give the descriptor where that may happen.
  template <HostRange Range>
  static UploadSource Mapping(const Range& range) noexcept {
    return UploadSource(Kind::kMapping, std::as_bytes(std::span(range)));
  }

  // `bytes` bytes of the open file `descriptor`, from `offset` on. Neither owns the descriptor nor
  // moves its position. A file that ends early is an error.
  static UploadSource File(int descriptor, uint64_t offset, uint64_t bytes) noexcept {
    UploadSource source(Kind::kFile, {});
    source.descriptor_ = descriptor;
    source.offset_ = offset;
    source.bytes_ = bytes;
    return source;
  }

  // The upload ends `owner` once the source is no longer needed, or was refused.
  UploadSource&& KeptAliveBy(HeldSource owner) && noexcept {
    owner_ = std::move(owner);
    return std::move(*this);
  }

  Kind kind() const noexcept { return kind_; }
  uint64_t bytes() const noexcept { return bytes_; }
  std::span<const std::byte> memory() const noexcept { return memory_; }  // empty for a file
  int descriptor() const noexcept { return descriptor_; }                 // -1 for memory
  uint64_t offset() const noexcept { return offset_; }
  std::optional<HeldSource>& owner() noexcept { return owner_; }

 private:
  UploadSource(Kind kind, std::span<const std::byte> memory) noexcept
      : kind_(kind), memory_(memory), bytes_(memory.size()) {}

  Kind kind_;
  std::span<const std::byte> memory_;
  int descriptor_ = -1;
  uint64_t offset_ = 0;
  uint64_t bytes_;
  std::optional<HeldSource> owner_{};
};

}  // namespace h2d

#endif  // H2D_STAGER_UPLOAD_SOURCE_H_
