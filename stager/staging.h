// What a copy does about its source, decided from plain data.
#ifndef H2D_STAGER_STAGING_H_
#define H2D_STAGER_STAGING_H_

#include <cstdint>
#include <limits>

#include "h2d/device/memory_kind.h"

namespace h2d {

// The thresholds of the decision, in bytes. The defaults are those of `KnownGood`. Whoever copies
// by the decision carries it out: an `Uploader` does `through_pinned`, and flushes whatever the
// policy says; a `ReleaseQueue` knows of no policy, and its caller acts on `flush_after`.
struct StagingPolicy {
  // Pageable sources smaller than this pass through pinned memory; from this size on the driver's
  // own path takes them.
  uint64_t pageable_through_pinned_below_bytes = uint64_t{100} << 20;
  // So does it those that are smaller than this, pageable or pinned, and nobody asks which: up to
  // 24 KiB a driver writes the values into its command, in one pass where pinned memory takes two
  // (16 KiB arrived a tenth sooner on an H200; in loops of many, where the event behind each one
  // counts, a quarter later). Such a source may be read until its ticket says otherwise; one that
  // has passed through pinned memory was read when the upload returned.
  uint64_t pageable_through_pinned_from_bytes = 0;
  // Sources larger than this are released early. For callers of a `ReleaseQueue`; an uploader does
  // not read it.
  uint64_t flush_above_bytes = uint64_t{10} << 20;

  // The borders that loaders of large models have settled on: 100 MiB and 10 MiB.
  static constexpr StagingPolicy KnownGood() noexcept { return {}; }

  // No upper border: a pipeline of pinned chunks filled by eight threads was 6.4 times as fast as
  // the driver's own path at 1 GiB (measured on an H200).
  static constexpr StagingPolicy Pipelined() noexcept {
    StagingPolicy policy;
    policy.pageable_through_pinned_below_bytes = std::numeric_limits<uint64_t>::max();
    return policy;
  }

  friend constexpr bool operator==(const StagingPolicy&, const StagingPolicy&) noexcept = default;
};

// The decision for one source.
struct Staging {
  // The bytes are first copied to pinned memory, which the device then reads. A file-backed source
  // always is, so that its page faults happen on the host and never under the copy; a pinned one
  // never is.
  bool through_pinned = false;
  // The source is to be released as soon as it was read, and not with the next batch: it is large,
  // or holds a mapping open. For a queue of sources: `if (staging.flush_after)
  // queue->Flush(stream)` after the push. An uploader flushes each source by itself, or its stream
  // could not be destroyed once the upload has returned.
  bool flush_after = false;

  static constexpr Staging Of(uint64_t bytes, MemoryKind kind,
                              const StagingPolicy& policy = {}) noexcept {
    const bool file_backed = kind == MemoryKind::kFileBacked;
    const bool pageable_through_pinned = kind == MemoryKind::kPageable &&
                                         bytes >= policy.pageable_through_pinned_from_bytes &&
                                         bytes < policy.pageable_through_pinned_below_bytes;
    return Staging{.through_pinned = file_backed || pageable_through_pinned,
                   .flush_after = file_backed || bytes > policy.flush_above_bytes};
  }

  friend constexpr bool operator==(const Staging&, const Staging&) noexcept = default;
};

}  // namespace h2d

#endif  // H2D_STAGER_STAGING_H_
