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

Expected<void> CheckTime(const char* name, std::chrono::nanoseconds time) {
  if (time >= std::chrono::nanoseconds(0)) return {};
  return InvalidArgument("The option " + std::string(name) + ", " + std::to_string(time.count()) +
                         " ns, is negative.");
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
  if (options.piece_bytes == 0) return Bad("piece_bytes", 0, "is too small");
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
  if (auto ok = CheckTime("wait_timeout", options.wait_timeout); !ok) return ok;
  if (auto ok = CheckTime("awake_for", options.awake_for); !ok) return ok;
  return Validate(options.release);
}

}  // namespace h2d
