// What happened in a release queue so far.
#ifndef H2D_STAGER_RELEASE_QUEUE_STATS_H_
#define H2D_STAGER_RELEASE_QUEUE_STATS_H_

#include <cstdint>

namespace h2d {

struct ReleaseQueueStats {
  uint64_t pushed = 0;
  uint64_t released = 0;
  uint64_t held_items = 0;  // now, over all streams; reserved ones included
  uint64_t held_bytes = 0;
  uint64_t flushes = 0;         // batches that an event stands for
  uint64_t flushes_failed = 0;  // no event could be recorded: the sources stayed, to be tried again
  uint64_t waits = 0;           // pushes that waited at a limit
};

}  // namespace h2d

#endif  // H2D_STAGER_RELEASE_QUEUE_STATS_H_
