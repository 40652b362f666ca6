#include "h2d/examples/replay/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "h2d/examples/replay/hash.h"

namespace h2d::replay {
namespace {

using std::chrono::nanoseconds;

TraceRequest Request(int64_t arrival_ns, uint32_t context, uint32_t generated) {
  return TraceRequest{nanoseconds(arrival_ns), context, generated};
}

// Requests with bursts and pauses, short and long, drawn from `seed`.
std::vector<TraceRequest> RandomTrace(uint64_t seed, uint32_t requests) {
  std::vector<TraceRequest> trace;
  int64_t arrival = 0;
  for (uint32_t i = 0; i < requests; ++i) {
    const uint64_t h = HashOf(seed, i);
    if (h % 4 == 0) arrival += static_cast<int64_t>(h >> 8 & 0xfffffff);
    trace.push_back(Request(arrival, 1 + static_cast<uint32_t>(h >> 40 & 0xff),
                            static_cast<uint32_t>(h >> 50 & 0x1f)));
  }
  return trace;
}

// What must hold of every step, and over all steps of a run.
class StepChecker {
 public:
  StepChecker(std::span<const TraceRequest> trace, const SchedulerOptions& options)
      : trace_(trace), options_(options) {}

  void Check(const StepPlan& plan) {
    EXPECT_LE(plan.rows.size(), options_.max_batch);
    EXPECT_GE(plan.tokens, 1U);
    EXPECT_LE(plan.tokens, options_.max_batched_tokens);
    std::set<int32_t> owned;
    std::set<uint32_t> requests;
    uint32_t tokens = 0;
    for (const RowPlan& row : plan.rows) {
      tokens += row.scheduled;
      EXPECT_TRUE(requests.insert(row.request).second) << "request twice: " << row.request;
      CheckBlocks(row, owned);
      CheckProgress(row);
    }
    EXPECT_EQ(tokens, plan.tokens);
  }

  // Tokens of `request` in the cache after the last step that it was in.
  uint32_t computed(uint32_t request) const { return computed_.at(request); }

 private:
  void CheckBlocks(const RowPlan& row, std::set<int32_t>& owned) {
    EXPECT_EQ(row.blocks.size(), BlocksFor(row.computed + row.scheduled, options_.block_size));
    for (const int32_t block : row.blocks) {
      EXPECT_GE(block, 0);
      EXPECT_LT(block, static_cast<int32_t>(options_.kv_blocks));
      EXPECT_TRUE(owned.insert(block).second) << "block with two owners: " << block;
    }
  }

  // A request goes on where it was, or begins anew.
  void CheckProgress(const RowPlan& row) {
    uint32_t& computed = computed_[row.request];
    EXPECT_TRUE(row.computed == computed || row.computed == 0);
    computed = row.computed + row.scheduled;
    const TraceRequest& request = trace_[row.request];
    EXPECT_LE(computed, request.context_tokens + std::max(request.generated_tokens, 1U) - 1);
  }

  std::span<const TraceRequest> trace_;
  SchedulerOptions options_;
  std::map<uint32_t, uint32_t> computed_;
};

SchedulerCounts RunChecked(std::span<const TraceRequest> trace, const SchedulerOptions& options) {
  Scheduler scheduler(trace, options);
  StepChecker checker(trace, options);
  while (const std::optional<StepPlan> plan = scheduler.Next()) checker.Check(*plan);
  EXPECT_EQ(scheduler.counts().finished + scheduler.never_fit().size(), trace.size());
  const std::set<uint32_t> set_aside(scheduler.never_fit().begin(), scheduler.never_fit().end());
  for (uint32_t i = 0; i < trace.size(); ++i) {
    if (set_aside.contains(i)) continue;
    EXPECT_EQ(checker.computed(i),
              trace[i].context_tokens + std::max(trace[i].generated_tokens, 1U) - 1);
  }
  return scheduler.counts();
}

TEST(SchedulerTest, EveryRequestEndsAndNoBlockHasTwoOwners) {
  uint32_t preempted = 0;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const std::vector<TraceRequest> trace = RandomTrace(seed, 120);
    SchedulerOptions options;
    options.max_batch = 1 + static_cast<uint32_t>(seed) % 9;
    options.max_batched_tokens = 16 << seed % 4;
    options.block_size = 1 + static_cast<uint32_t>(seed) % 17;
    options.kv_blocks = BlocksFor(320, options.block_size);
    preempted += RunChecked(trace, options).preempted;
  }
  EXPECT_GT(preempted, 100U);
}

TEST(SchedulerTest, APromptLongerThanTheBudgetIsPrefilledInChunks) {
  const std::vector<TraceRequest> trace = {Request(0, 25, 3)};
  SchedulerOptions options;
  options.max_batched_tokens = 10;
  Scheduler scheduler(trace, options);
  std::vector<uint32_t> tokens;
  while (const std::optional<StepPlan> plan = scheduler.Next()) tokens.push_back(plan->tokens);
  // 25 tokens of prompt, then one step for each generated token but the first.
  EXPECT_EQ(tokens, (std::vector<uint32_t>{10, 10, 5, 1, 1}));
}

TEST(SchedulerTest, ARequestThatGeneratesNothingEndsWithItsPrompt) {
  const std::vector<TraceRequest> trace = {Request(0, 5, 0)};
  Scheduler scheduler(trace, {});
  EXPECT_TRUE(scheduler.Next());
  EXPECT_FALSE(scheduler.Next());
  EXPECT_EQ(scheduler.counts().finished, 1U);
}

TEST(SchedulerTest, ARequestThatCanNeverFitIsSetAsideAndTheOthersRun) {
  const std::vector<TraceRequest> trace = {Request(0, 10, 2), Request(0, 64, 2), Request(0, 64, 1)};
  SchedulerOptions options;
  options.block_size = 16;
  options.kv_blocks = 4;  // 64 tokens
  Scheduler scheduler(trace, options);
  while (scheduler.Next()) {
  }
  EXPECT_EQ(scheduler.counts().finished, 2U);
  ASSERT_EQ(scheduler.never_fit().size(), 1U);
  EXPECT_EQ(scheduler.never_fit()[0], 1U);
}

TEST(SchedulerTest, WhenBlocksRunOutTheYoungestBeginsAnew) {
  // Two requests of 16 tokens fill the cache; the older one's next block costs the younger its own.
  const std::vector<TraceRequest> trace = {Request(0, 16, 3), Request(0, 16, 3)};
  SchedulerOptions options;
  options.block_size = 16;
  options.kv_blocks = 2;
  Scheduler scheduler(trace, options);
  ASSERT_EQ(scheduler.Next()->rows.size(), 2U);
  const std::optional<StepPlan> second = scheduler.Next();
  ASSERT_EQ(second->rows.size(), 1U);
  EXPECT_EQ(second->rows[0].request, 0U);
  EXPECT_EQ(scheduler.counts().preempted, 1U);
  EXPECT_EQ(scheduler.Next()->rows.size(), 1U);
  const std::optional<StepPlan> anew = scheduler.Next();
  EXPECT_EQ(anew->rows[0].request, 1U);
  EXPECT_EQ(anew->rows[0].computed, 0U);
  EXPECT_EQ(anew->rows[0].scheduled, 17U);  // with the token that was generated before
}

TEST(SchedulerTest, AStepThatPreemptsAdmitsNobody) {
  // In the second step the younger request finds no block for the rest of its prompt. A first chunk
  // of it would fit again at once, only to be preempted again.
  const std::vector<TraceRequest> trace = {Request(0, 16, 3), Request(0, 48, 1)};
  SchedulerOptions options;
  options.block_size = 16;
  options.kv_blocks = 4;
  options.max_batched_tokens = 33;
  Scheduler scheduler(trace, options);
  ASSERT_EQ(scheduler.Next()->rows.size(), 2U);
  const std::optional<StepPlan> second = scheduler.Next();
  EXPECT_EQ(second->rows.size(), 1U);
  EXPECT_FALSE(second->admits);
  EXPECT_EQ(scheduler.counts().preempted, 1U);
  EXPECT_TRUE(scheduler.Next()->admits);
}

TEST(SchedulerTest, ALeavingRequestsRowGoesToTheLastOne) {
  const std::vector<TraceRequest> trace = {Request(0, 4, 9), Request(0, 4, 1), Request(0, 4, 9),
                                           Request(0, 4, 9)};
  Scheduler scheduler(trace, {});
  ASSERT_EQ(scheduler.Next()->rows.size(), 4U);
  const std::optional<StepPlan> plan = scheduler.Next();
  ASSERT_EQ(plan->rows.size(), 3U);
  EXPECT_EQ(plan->rows[0].request, 0U);
  EXPECT_EQ(plan->rows[1].request, 3U);
  EXPECT_EQ(plan->rows[2].request, 2U);
}

TEST(SchedulerTest, VirtualTimeSkipsToTheNextArrivalWhenNothingRuns) {
  const std::vector<TraceRequest> trace = {Request(0, 4, 1), Request(3'600'000'000'000, 4, 1)};
  Scheduler scheduler(trace, {});
  EXPECT_FALSE(scheduler.Next()->after_idle);
  const std::optional<StepPlan> second = scheduler.Next();
  EXPECT_TRUE(second->after_idle);
  EXPECT_TRUE(second->admits);
  EXPECT_FALSE(scheduler.Next());
}

TEST(SchedulerTest, ARequestWaitsForItsArrival) {
  // The second arrives while the first one's second step runs.
  SchedulerOptions options;
  options.step_base = nanoseconds(1000);
  options.step_per_token = nanoseconds(0);
  const std::vector<TraceRequest> trace = {Request(0, 4, 5), Request(1500, 4, 1)};
  Scheduler scheduler(trace, options);
  EXPECT_EQ(scheduler.Next()->rows.size(), 1U);
  EXPECT_EQ(scheduler.Next()->rows.size(), 1U);
  EXPECT_EQ(scheduler.Next()->rows.size(), 2U);
}

}  // namespace
}  // namespace h2d::replay
