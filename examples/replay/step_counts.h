// What the steps of a run did.
#ifndef H2D_EXAMPLES_REPLAY_STEP_COUNTS_H_
#define H2D_EXAMPLES_REPLAY_STEP_COUNTS_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "h2d/stager/stager_stats.h"

namespace h2d::replay {

// Copies that travelled: each is one copy call of the device, or one batch.
inline uint64_t CopiesOf(const StagerStats& stats) {
  return stats.copies_issued + stats.copies_trimmed;
}

struct StepCounts {
  uint64_t steps = 0;
  uint32_t most_in_flight = 0;  // enqueued and seen not complete
  uint64_t most_copies = 0;     // of one step: copy calls, or batches

  // Steps with at least one ...
  uint64_t with_skip = 0;
  uint64_t with_trim = 0;
  uint64_t with_stream_wait = 0;  // a stream made to wait for a mirror's copy on another one
  uint64_t with_full_ring = 0;    // a copy that had to wait for a slot

  uint64_t verified_steps = 0;
  uint64_t verified_bytes = 0;
  uint64_t mismatches = 0;  // steps whose graph read a byte that it should not have

  // For each step.
  std::vector<uint64_t> bytes_sent;
  std::vector<uint64_t> staging_ns;  // the host's time to stage it, by `Device::Now`

  // Counts one step, from what the stager did in it.
  void AddStep(const StagerStats& before, const StagerStats& after, uint64_t nanoseconds) {
    ++steps;
    with_skip += after.copies_skipped > before.copies_skipped ? 1 : 0;
    with_trim += after.copies_trimmed > before.copies_trimmed ? 1 : 0;
    with_stream_wait += after.stream_waits > before.stream_waits ? 1 : 0;
    with_full_ring += after.slot_waits > before.slot_waits ? 1 : 0;
    most_copies = std::max(most_copies, CopiesOf(after) - CopiesOf(before));
    bytes_sent.push_back(after.bytes_sent - before.bytes_sent);
    staging_ns.push_back(nanoseconds);
  }
};

}  // namespace h2d::replay

#endif  // H2D_EXAMPLES_REPLAY_STEP_COUNTS_H_
