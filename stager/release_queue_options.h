// The marks and limits of a release queue.
#ifndef H2D_STAGER_RELEASE_QUEUE_OPTIONS_H_
#define H2D_STAGER_RELEASE_QUEUE_OPTIONS_H_

#include <chrono>
#include <cstdint>

#include "h2d/device/error.h"

namespace h2d {

// All of them are per stream.
struct ReleaseQueueOptions {
  // Sources that no event stands for yet are flushed, one event for all of them, when there are
  // this many, or this many bytes. A flush costs a record and never waits.
  uint64_t flush_items = 64;
  uint64_t flush_bytes = uint64_t{64} << 20;

  // How many sources, and how many bytes of them, are held at most; beyond it a push waits, and who
  // came first is served first. One source larger than `max_bytes` is taken when its stream holds
  // nothing else; pushes that come after it wait behind it.
  uint64_t max_items = 4096;
  uint64_t max_bytes = uint64_t{4} << 30;

  // How long a push waits at a limit before it fails with `kUnavailable`. 0: not at all.
  std::chrono::nanoseconds wait_timeout = std::chrono::seconds(30);
};

// Names the first field that is out of its range or at odds with another, and its value.
[[nodiscard]] Expected<void> Validate(const ReleaseQueueOptions& options);

}  // namespace h2d

#endif  // H2D_STAGER_RELEASE_QUEUE_OPTIONS_H_
