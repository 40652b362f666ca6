// The limits of an uploader.
#ifndef H2D_STAGER_UPLOADER_OPTIONS_H_
#define H2D_STAGER_UPLOADER_OPTIONS_H_

#include <chrono>
#include <cstdint>

#include "h2d/device/error.h"
#include "h2d/stager/release_queue_options.h"
#include "h2d/stager/staging.h"

namespace h2d {

// The defaults suit one GPU on a PCIe 5 link; `bazel run -c opt //bench:calibrate` measures a
// machine and prints those that suit it.
struct UploaderOptions {
  static constexpr uint32_t kMaxThreads = 256;
  static constexpr uint32_t kMaxChunks = 512;

  // Which sources pass through pinned chunks. The others are released as soon as they were read,
  // whatever their size and `flush_above_bytes`.
  StagingPolicy policy = StagingPolicy::Pipelined();

  // Threads that read sources into chunks beside the calling thread; made by the first upload that
  // wakes them, and no more than there are cores for them and the calling thread.
  uint32_t threads = 8;

  // The largest chunk, and the smallest that a source is divided into. Between the two it is a
  // quarter of the source up to 1 MiB, and a sixteenth beyond, so that copies of what was read run
  // beside the reading of the rest. Of a file from 128 MiB on that four threads or more read, the
  // largest is 4 MiB, or the smallest if that is more. With less than four times as much in
  // `max_pinned_bytes` no copy of one upload runs beside its reading.
  uint64_t chunk_bytes = uint64_t{8} << 20;
  uint64_t min_chunk_bytes = uint64_t{256} << 10;

  // A chunk is read in pieces of this size, each by whichever thread comes first; one of a file in
  // quarters, when they are larger, up to 1 MiB.
  uint64_t piece_bytes = uint64_t{128} << 10;

  // Sources from this size on wake threads that sleep. For smaller ones the calling thread reads,
  // and who is awake still.
  uint64_t wake_bytes = uint64_t{1} << 20;

  // How long a thread that has nothing to read looks for it before it sleeps.
  std::chrono::nanoseconds awake_for = std::chrono::microseconds(50);

  // How many chunks may be held or in flight at once, over all uploads; fewer when they would not
  // fit `max_pinned_bytes`. They are divided among the streams in use and one more, and a stream's
  // among its uploads. An upload from 128 MiB on by four threads or more uses no more of them than
  // 32 MiB, or four: more would leave the processor's caches between one use and the next.
  uint32_t max_chunks = 24;

  // How many bytes of pinned memory the uploader may own at once.
  uint64_t max_pinned_bytes = uint64_t{256} << 20;

  // Memory up to this size is copied by the calling thread alone, through one slot of a ring. One
  // stream that stands still may use all of the ring; then the others' small sources take chunks.
  uint64_t ring_bytes = uint64_t{256} << 10;

  // How long an upload waits for a chunk before it fails with `kUnavailable`.
  std::chrono::nanoseconds wait_timeout = std::chrono::seconds(30);

  // For sources that the device reads directly: the limits. Each is flushed by itself.
  ReleaseQueueOptions release{};
};

// Names the first field that is out of its range or at odds with another, and its value.
[[nodiscard]] Expected<void> Validate(const UploaderOptions& options);

}  // namespace h2d

#endif  // H2D_STAGER_UPLOADER_OPTIONS_H_
