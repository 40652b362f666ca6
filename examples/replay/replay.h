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
#include "h2d/examples/replay/step_counts.h"
#include "h2d/examples/replay/trace.h"
#include "h2d/stager/stager_stats.h"

namespace h2d::replay {

// A bug to plant, to see that it is found.
enum class Plant : uint8_t {
  kNone,
  kNoWait,       // a hand-written ring that reuses its buffers without waiting for their copies
  kLateRecord,   // the graph waits for the plan's event before that is recorded
  kWar,          // the plan does not wait for the graph that reads what it overwrites
  kStaleMirror,  // a hand-written mirror that serves two destinations
};

struct ReplayOptions {
  SchedulerOptions scheduler;
  uint32_t slots = 20;  // of the stager's ring: fewer than four steps can need
  // Of made-up contents and of the simulated device's choices; under this one it is unkind in every
  // way that `FakeMachine` asks for.
  uint64_t seed = 13;
  bool mirrors = true;
  Plant plant = Plant::kNone;
};

struct ReplayResult {
  std::string machine;  // its name
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
