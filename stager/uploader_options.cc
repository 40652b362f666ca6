#include "h2d/stager/uploader_options.h"

#include <string>

#include "h2d/device/checked_size.h"
#include "h2d/device/pinned_buffer.h"

namespace h2d {
namespace {

Unexpected Bad(const char* name, uint64_t value, const std::string& what) {
  return InvalidArgument("The option " + std::string(name) + ", " + std::to_string(value) + ", " +
                         what + ".");
}

}  // namespace

Expected<void> Validate(const UploaderOptions& options) {
  using Options = UploaderOptions;
  if (options.threads > Options::kMaxThreads)
    return Bad("threads", options.threads, "is above " + std::to_string(Options::kMaxThreads));
  if (options.max_chunks == 0 || options.max_chunks > Options::kMaxChunks) {
    return Bad("max_chunks", options.max_chunks,
               "is not between 1 and " + std::to_string(Options::kMaxChunks));
  }
  if (options.min_chunk_bytes == 0 || options.min_chunk_bytes > options.chunk_bytes) {
    return Bad("min_chunk_bytes", options.min_chunk_bytes,
               "is not between 1 and chunk_bytes, " + std::to_string(options.chunk_bytes));
  }
  const auto chunk = RoundedUp(options.chunk_bytes, PinnedBuffer::kAlignment);
  if (!chunk || *chunk > options.max_pinned_bytes) {
    return Bad("chunk_bytes", options.chunk_bytes,
               "in whole blocks of " + std::to_string(PinnedBuffer::kAlignment) +
                   " bytes is above max_pinned_bytes, " + std::to_string(options.max_pinned_bytes));
  }
  if (options.ring_bytes > options.chunk_bytes) {
    return Bad("ring_bytes", options.ring_bytes,
               "is above chunk_bytes, " + std::to_string(options.chunk_bytes));
  }
  if (options.wait_timeout < std::chrono::nanoseconds(0)) {
    return InvalidArgument("The option wait_timeout, " +
                           std::to_string(options.wait_timeout.count()) + " ns, is negative.");
  }
  return Validate(options.release);
}

}  // namespace h2d
