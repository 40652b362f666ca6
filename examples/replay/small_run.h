// A small trace and options under which everything happens: for tests.
#ifndef H2D_EXAMPLES_REPLAY_SMALL_RUN_H_
#define H2D_EXAMPLES_REPLAY_SMALL_RUN_H_

#include <vector>

#include "h2d/examples/replay/hash.h"
#include "h2d/examples/replay/replay.h"
#include "h2d/examples/replay/trace.h"

namespace h2d::replay {

// 50 requests in groups of four.
inline std::vector<TraceRequest> SmallTrace() {
  std::vector<TraceRequest> trace;
  for (uint32_t i = 0; i < 50; ++i) {
    const uint64_t hash = HashOf(3, i);
    trace.push_back(TraceRequest{std::chrono::milliseconds(40 * (i / 4)),
                                 1 + static_cast<uint32_t>(hash % 90),
                                 static_cast<uint32_t>(hash >> 32) % 20});
  }
  return trace;
}

// Prompts longer than a step, preemptions, and changes that lie too far apart for one copy.
inline ReplayOptions SmallOptions() {
  ReplayOptions options;
  options.scheduler.max_batch = 8;
  options.scheduler.max_batched_tokens = 64;
  options.scheduler.block_size = 4;
  options.scheduler.kv_blocks = 60;
  options.writer.cover_gap_bytes = 32;
  return options;
}

}  // namespace h2d::replay

#endif  // H2D_EXAMPLES_REPLAY_SMALL_RUN_H_
