#include "h2d/stager/internal/source_reader.h"

#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <string>
#include <system_error>

#include "h2d/device/checked_size.h"
#include "h2d/stager/internal/streaming_copy.h"

namespace h2d::internal {
namespace {

// The most that one call of the system reads.
constexpr uint64_t kMostBytesOfOneRead = uint64_t{1} << 30;

std::string Cause(int code) {
  return std::generic_category().message(code) + " (errno " + std::to_string(code) + ")";
}

}  // namespace

Expected<void> SourceReader::Check() const {
  if (!is_file_ || bytes_ == 0) return {};
  const std::string range =
      std::to_string(bytes_) + " bytes at offset " + std::to_string(offset_) + " of a file";
  const auto end = CheckedSum(offset_, bytes_);
  if (!end || *end > static_cast<uint64_t>(std::numeric_limits<off_t>::max()))
    return InvalidArgument("The source, " + range + ", ends beyond the largest file offset.");
  struct stat status = {};
  if (fstat(descriptor_, &status) != 0) {
    return InvalidArgument("The source, " + range + ", has descriptor " +
                           std::to_string(descriptor_) + ": " + Cause(errno) + ".");
  }
  if (S_ISDIR(status.st_mode)) {
    return InvalidArgument("The source, " + range + ", has descriptor " +
                           std::to_string(descriptor_) + ", which is a directory.");
  }
  // Files of the kernel's own say 0 and have content.
  const bool has_size = S_ISREG(status.st_mode) && status.st_size > 0;
  if (has_size && *end > static_cast<uint64_t>(status.st_size)) {
    return InvalidArgument("The source, " + range + ", ends beyond the file's " +
                           std::to_string(status.st_size) + " bytes.");
  }
  return {};
}

Expected<void> SourceReader::Read(uint64_t at, std::span<std::byte> into) const {
  if (is_file_) return ReadFile(at, into);
  if (by_many_threads_) {
    std::memcpy(into.data(), memory_.data() + at, into.size());
  } else {
    StreamingCopy(into.data(), memory_.data() + at, into.size());
  }
  return {};
}

Expected<void> SourceReader::ReadFile(uint64_t at, std::span<std::byte> into) const {
  uint64_t done = 0;
  while (done < into.size()) {
    const uint64_t from = offset_ + at + done;
    const uint64_t wanted = std::min<uint64_t>(into.size() - done, kMostBytesOfOneRead);
    const ssize_t got = pread(descriptor_, into.data() + done, wanted, static_cast<off_t>(from));
    if (got > 0) {
      done += static_cast<uint64_t>(got);
    } else if (got == 0) {
      return FailedPrecondition("The file ended at offset " + std::to_string(from) + ", " +
                                std::to_string(offset_ + bytes_ - from) +
                                " bytes before the end of the source.");
    } else if (errno != EINTR) {
      return FailedPrecondition("The file could not be read at offset " + std::to_string(from) +
                                ": " + Cause(errno) + ".");
    }
  }
  return {};
}

}  // namespace h2d::internal
