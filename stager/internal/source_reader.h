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
  // A source of so many bytes keeps so many threads busy until memory is what limits them.
  static constexpr uint64_t kManyBytes = uint64_t{128} << 20;
  static constexpr uint32_t kManyThreads = 4;

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

  // Told how many threads will read, before they do. What many threads read is still in the cache
  // that they share when the device reads it, and whoever sends the chunks hardly reads; few
  // store past the caches, which spares each of them work, and the sender reads as well.
  void PrepareFor(uint32_t threads) noexcept {
    by_many_threads_ = bytes_ >= kManyBytes && threads >= kManyThreads;
  }
  bool by_many_threads() const noexcept { return by_many_threads_; }
  bool is_file() const noexcept { return is_file_; }

 private:
  Expected<void> ReadFile(uint64_t at, std::span<std::byte> into) const;

  std::span<const std::byte> memory_;
  int descriptor_;
  uint64_t offset_;
  uint64_t bytes_;
  bool is_file_;
  bool by_many_threads_ = false;
};

}  // namespace h2d::internal

#endif  // H2D_STAGER_INTERNAL_SOURCE_READER_H_
