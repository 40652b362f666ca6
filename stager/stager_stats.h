// What a stager has done so far.
#ifndef H2D_STAGER_STAGER_STATS_H_
#define H2D_STAGER_STAGER_STATS_H_

#include <cstdint>

namespace h2d {

// Counts only what happened: a call that failed counts in `errors` and nowhere else, unless its
// copy was enqueued and only the record behind it failed; then it is an issued copy, too. A
// snapshot: the counters are read one after another while others may copy.
struct StagerStats {
  uint64_t copies_asked = 0;    // calls that are counted below
  uint64_t copies_issued = 0;   // whole images enqueued
  uint64_t copies_trimmed = 0;  // spans enqueued
  uint64_t copies_skipped = 0;  // mirror hits
  uint64_t would_block = 0;     // copies and acquires that found no slot and did not wait
  uint64_t errors = 0;          // calls to copy, submit, acquire or record that failed

  uint64_t bytes_asked = 0;  // values and padding of all calls that succeeded
  uint64_t bytes_sent = 0;   // bytes of the copies enqueued

  uint64_t stream_waits = 0;     // a stream was made to wait for a mirror's last copy
  uint64_t slot_waits = 0;       // a call waited for a slot
  uint64_t growths = 0;          // slabs taken after construction
  uint64_t growth_failures = 0;  // slabs or events that the device refused
  uint64_t slabs_retired = 0;    // idle slabs given back to the device's cache to make room

  uint32_t slots_in_use = 0;       // in flight, held or quarantined now
  uint32_t slots_in_use_most = 0;  // at most at once
  uint32_t slots_quarantined = 0;  // whose completion cannot be learnt yet
  uint64_t pinned_bytes = 0;       // owned now
  uint64_t pinned_bytes_most = 0;  // at most at once
};

}  // namespace h2d

#endif  // H2D_STAGER_STAGER_STATS_H_
