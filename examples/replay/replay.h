// A whole run: a trace through the scheduler, the staging and the step loop.
#ifndef H2D_EXAMPLES_REPLAY_REPLAY_H_
#define H2D_EXAMPLES_REPLAY_REPLAY_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "h2d/device/error.h"
#include "h2d/examples/replay/machine.h"
#include "h2d/examples/replay/scheduler.h"
#include "h2d/examples/replay/staging_way.h"
#include "h2d/examples/replay/step_counts.h"
#include "h2d/examples/replay/trace.h"
#include "h2d/stager/stager_stats.h"
#include "h2d/stager/step_writer_options.h"

namespace h2d::replay {

// A bug to plant, to see that it is found.
enum class Plant : uint8_t {
  kNone,
  // In the engine, however it stages.
  kLateRecord,   // the graph waits for the plan's event before that is recorded
  kWar,          // the plan does not wait for the graph that reads what it overwrites
  kOneSlab,      // two steps in flight share one slab and wait as though each had its own
  kGraphWrites,  // the graph writes a field that was not declared `device_written`
  // In a staging by hand: a copy for each tensor.
  kNoWait,       // a ring that reuses its buffers without waiting for their copies
  kStaleMirror,  // a mirror that serves two destinations
};

constexpr bool IsStagedByHand(Plant plant) noexcept {
  return plant == Plant::kNoWait || plant == Plant::kStaleMirror;
}

// What the four steps in flight take at most: each a slot, or one for each of its eight tensors.
constexpr uint32_t EnoughSlotsFor(StagingWay way) noexcept { return IsPacked(way) ? 4 : 32; }
// Fewer, and enough for any one step.
constexpr uint32_t TooFewSlotsFor(StagingWay way) noexcept { return IsPacked(way) ? 3 : 20; }

struct ReplayOptions {
  SchedulerOptions scheduler;
  StagingWay staging = StagingWay::kPackedMirrored;
  uint32_t slots = 0;  // of the stager's ring; 0: `TooFewSlotsFor`, so that some steps wait for one
  StepWriterOptions writer;  // of packed staging
  // Of made-up contents and of the simulated device's choices; under this one it is unkind in every
  // way that `FakeMachine` asks for.
  uint64_t seed = 13;
  Plant plant = Plant::kNone;
};

struct ReplayResult {
  std::string machine;  // its name
  bool simulated_time = false;
  uint32_t requests = 0;
  SchedulerCounts scheduling;
  std::vector<uint32_t> never_fit;  // requests, by their index in the trace
  StepCounts steps;
  StagerStats stager;
  uint64_t hazards = 0;
  double seconds = 0;   // of real time
  std::string failure;  // what was found wrong, and the machine's time line; empty when nothing was
};

// Called after each step with the number of requests that are done.
using OnProgress = std::function<void(uint32_t requests_done)>;

// Stages every step of `trace` on `machine` and verifies what its graph read. Stops at the first
// mismatch or hazard, which is an answer and no error.
// Errors: options that cannot be run; the device's and the stager's.
Expected<ReplayResult> Replay(std::span<const TraceRequest> trace, const ReplayOptions& options,
                              Machine& machine, const OnProgress& on_progress);

}  // namespace h2d::replay

#endif  // H2D_EXAMPLES_REPLAY_REPLAY_H_
