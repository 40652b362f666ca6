#include "h2d/examples/replay/scheduler.h"

#include <algorithm>
#include <utility>

namespace h2d::replay {

Scheduler::Scheduler(std::span<const TraceRequest> trace, const SchedulerOptions& options)
    : trace_(trace), options_(options), pool_(options.kv_blocks) {}

uint32_t Scheduler::BlocksOf(const TraceRequest& request, uint32_t block_size) noexcept {
  const uint32_t cached = request.context_tokens + std::max(request.generated_tokens, 1U) - 1;
  return BlocksFor(cached, block_size);
}

std::optional<StepPlan> Scheduler::Next() {
  FinishStep();
  Arrive();
  bool after_idle = false;
  while (running_.empty() && waiting_.empty()) {
    if (arrived_ == trace_.size()) return std::nullopt;
    now_ = trace_[arrived_].arrival;
    after_idle = true;
    Arrive();
  }
  budget_ = options_.max_batched_tokens;
  preempted_ = false;
  ScheduleRunning();
  const size_t rows_before = running_.size();
  if (!preempted_) Admit();
  return MakePlan(after_idle, running_.size() > rows_before);
}

// What the step before has done: its tokens are in the cache, and whoever had no uncomputed token
// left has one more, or is done.
void Scheduler::FinishStep() {
  for (std::unique_ptr<Sequence>& sequence : running_) {
    sequence->computed += std::exchange(sequence->scheduled, 0);
    if (UncomputedTokens(*sequence) > 0) continue;
    const uint32_t wanted = trace_[sequence->request].generated_tokens;
    if (sequence->generated < wanted) ++sequence->generated;
    if (sequence->generated < wanted) continue;
    pool_.Release(sequence->blocks);
    LeaveRow(*sequence);
    ++counts_.finished;
    sequence.reset();
  }
  std::erase(running_, nullptr);
}

void Scheduler::Arrive() {
  for (; arrived_ < trace_.size() && trace_[arrived_].arrival <= now_; ++arrived_) {
    const auto request = static_cast<uint32_t>(arrived_);
    if (BlocksOf(trace_[arrived_], options_.block_size) > options_.kv_blocks) {
      never_fit_.push_back(request);
    } else {
      waiting_.push_back(std::make_unique<Sequence>(Sequence{.request = request}));
    }
  }
}

void Scheduler::ScheduleRunning() {
  for (size_t i = 0; i < running_.size(); ++i) {
    Sequence& sequence = *running_[i];
    const uint32_t tokens = std::min(UncomputedTokens(sequence), budget_);
    // The youngest ones give way, this one last of all; the oldest always finds room because a
    // request that fits no empty cache never arrives here.
    while (i < running_.size() && !Reserve(sequence, tokens)) Preempt();
  }
}

void Scheduler::Admit() {
  while (!waiting_.empty() && running_.size() < options_.max_batch && budget_ > 0) {
    Sequence& next = *waiting_.front();
    if (!Reserve(next, std::min(UncomputedTokens(next), budget_))) return;
    next.row = rows_.size();
    rows_.push_back(&next);
    running_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
}

// Makes room in the cache for `tokens` more tokens and charges the step's budget for them.
bool Scheduler::Reserve(Sequence& sequence, uint32_t tokens) {
  if (!pool_.Grow(sequence.blocks, BlocksFor(sequence.computed + tokens, options_.block_size))) {
    return false;
  }
  sequence.scheduled = tokens;
  budget_ -= tokens;
  return true;
}

void Scheduler::Preempt() {
  std::unique_ptr<Sequence> victim = std::move(running_.back());
  running_.pop_back();
  pool_.Release(victim->blocks);
  LeaveRow(*victim);
  victim->computed = 0;
  waiting_.push_front(std::move(victim));
  ++counts_.preempted;
  preempted_ = true;
}

void Scheduler::LeaveRow(const Sequence& sequence) {
  rows_[sequence.row] = rows_.back();
  rows_[sequence.row]->row = sequence.row;
  rows_.pop_back();
}

uint32_t Scheduler::UncomputedTokens(const Sequence& sequence) const {
  return trace_[sequence.request].context_tokens + sequence.generated - sequence.computed;
}

StepPlan Scheduler::MakePlan(bool after_idle, bool admits) {
  row_plans_.clear();
  for (const Sequence* sequence : rows_) {
    row_plans_.push_back(RowPlan{.request = sequence->request,
                                 .computed = sequence->computed,
                                 .scheduled = sequence->scheduled,
                                 .blocks = sequence->blocks});
  }
  counts_.most_rows = std::max(counts_.most_rows, static_cast<uint32_t>(rows_.size()));
  const uint32_t tokens = options_.max_batched_tokens - budget_;
  const std::chrono::nanoseconds duration =
      options_.step_base + options_.step_per_token * int64_t{tokens};
  now_ += duration;
  return StepPlan{.rows = row_plans_,
                  .tokens = tokens,
                  .after_idle = after_idle,
                  .admits = admits,
                  .duration = duration};
}

}  // namespace h2d::replay
