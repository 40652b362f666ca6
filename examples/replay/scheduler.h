// Continuous batching: which tokens of which requests run in the next step.
#ifndef H2D_EXAMPLES_REPLAY_SCHEDULER_H_
#define H2D_EXAMPLES_REPLAY_SCHEDULER_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "h2d/examples/replay/block_pool.h"
#include "h2d/examples/replay/trace.h"

namespace h2d::replay {

struct SchedulerOptions {
  uint32_t max_batch = 64;             // requests that run at once
  uint32_t max_batched_tokens = 2048;  // tokens of one step
  uint32_t block_size = 16;            // tokens of one block
  uint32_t kv_blocks = 2048;           // blocks of the cache

  // What a step takes in virtual time, of the order of a large model on one device.
  std::chrono::nanoseconds step_base{8'000'000};
  std::chrono::nanoseconds step_per_token{60'000};
};

// One row of the batch: a request that runs. Rows keep their place from step to step; when one
// leaves, the last row takes its place.
struct RowPlan {
  uint32_t request = 0;    // its index in the trace
  uint32_t computed = 0;   // tokens that are in the cache before the step
  uint32_t scheduled = 0;  // tokens of this step; 0 when the others used the step's budget up
  std::span<const int32_t> blocks;  // of the cache, in token order
};

// One step. The spans are valid until the scheduler makes the next one.
struct StepPlan {
  std::span<const RowPlan> rows;
  uint32_t tokens = 0;      // scheduled, over all rows
  bool after_idle = false;  // nothing ran before it: the device was idle
  bool admits = false;      // a request joined the batch
  std::chrono::nanoseconds duration{0};
};

struct SchedulerCounts {
  uint32_t finished = 0;
  uint32_t preempted = 0;  // times that a request lost its blocks and began anew
  uint32_t most_rows = 0;
};

// Requests arrive in virtual time and wait in line. Each step first serves the requests that run,
// oldest first: one token each, or the next chunk of a prompt; then it admits from the line while
// rows, budget and blocks last. When a running request finds no block, the youngest one is
// preempted: it gives up its blocks, goes back to the head of the line and is computed anew.
//
// A request that needs more blocks than the cache has can never run: it is set aside on arrival.
class Scheduler {
 public:
  // `trace` outlives the scheduler, in order of arrival. All options are at least 1.
  Scheduler(std::span<const TraceRequest> trace, const SchedulerOptions& options);

  // The next step; nothing once every request has finished or was set aside.
  std::optional<StepPlan> Next();

  const SchedulerCounts& counts() const noexcept { return counts_; }
  // Requests that can never fit, in order of arrival.
  std::span<const uint32_t> never_fit() const noexcept { return never_fit_; }

  // Blocks that a request needs at its end: the last generated token is never put in the cache.
  static uint32_t BlocksOf(const TraceRequest& request, uint32_t block_size) noexcept;

 private:
  struct Sequence {
    uint32_t request = 0;
    uint32_t generated = 0;
    uint32_t computed = 0;
    uint32_t scheduled = 0;
    size_t row = 0;
    std::vector<int32_t> blocks = {};
  };

  void FinishStep();
  void Arrive();
  void ScheduleRunning();
  void Admit();
  void Preempt();
  bool Reserve(Sequence& sequence, uint32_t tokens);
  void LeaveRow(const Sequence& sequence);
  uint32_t UncomputedTokens(const Sequence& sequence) const;
  StepPlan MakePlan(bool after_idle, bool admits);

  std::span<const TraceRequest> trace_;
  SchedulerOptions options_;
  BlockPool pool_;
  std::vector<std::unique_ptr<Sequence>> running_;  // oldest first
  std::vector<Sequence*> rows_;
  std::deque<std::unique_ptr<Sequence>> waiting_;
  std::vector<RowPlan> row_plans_;
  std::vector<uint32_t> never_fit_;
  SchedulerCounts counts_;
  size_t arrived_ = 0;
  uint32_t budget_ = 0;
  bool preempted_ = false;  // in this step: then nobody is admitted
  std::chrono::nanoseconds now_{0};
};

}  // namespace h2d::replay

#endif  // H2D_EXAMPLES_REPLAY_SCHEDULER_H_
