// Reads any piece of an upload's source into memory.
#ifndef H2D_STAGER_INTERNAL_SOURCE_READER_H_
#define H2D_STAGER_INTERNAL_SOURCE_READER_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "h2d/device/error.h"
#include "h2d/stager/upload_source.h"

namespace h2d::internal {

// A view of the source, without its owner, read into memory that the device reads next. Any number
// of threads may read different pieces.
class SourceReader {
 public:
  explicit SourceReader(const UploadSource& source) noexcept
      : memory_(source.memory()),
        descriptor_(source.descriptor()),
        offset_(source.offset()),
        bytes_(source.bytes()),
        is_file_(source.kind() == UploadSource::Kind::kFile) {}

  // What can be known without reading. Errors: a descriptor that is not open or is a directory, a
  // range that overflows or ends behind the file.
  Expected<void> Check() const;

  // Fills `into` with the bytes from `at` on, which lie within the source. Errors: the file ended
  // early, or could not be read; the message has the offset in the file.
  Expected<void> Read(uint64_t at, std::span<std::byte> into) const;

  uint64_t bytes() const noexcept { return bytes_; }

 private:
  Expected<void> ReadFile(uint64_t at, std::span<std::byte> into) const;

  std::span<const std::byte> memory_;
  int descriptor_;
  uint64_t offset_;
  uint64_t bytes_;
  bool is_file_;
};

}  // namespace h2d::internal

#endif  // H2D_STAGER_INTERNAL_SOURCE_READER_H_
