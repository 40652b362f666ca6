// The trace that ships with the project, under the default options.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "h2d/examples/replay/fake_machine.h"
#include "h2d/examples/replay/replay.h"
#include "h2d/examples/replay/staging_way.h"
#include "h2d/examples/replay/trace.h"

namespace h2d::replay {
namespace {

Expected<std::vector<TraceRequest>> ShippedTrace() {
  return ReadTrace("examples/data/azure_llm_2023_code.csv");
}

TEST(ShippedTraceTest, ItIsTheWholeTrace) {
  const Expected<std::vector<TraceRequest>> trace = ShippedTrace();
  ASSERT_TRUE(trace) << trace.error().message;
  uint64_t context = 0;
  uint64_t generated = 0;
  for (const TraceRequest& request : *trace) {
    context += request.context_tokens;
    generated += request.generated_tokens;
  }
  EXPECT_EQ(trace->size(), 8'819U);
  EXPECT_EQ(context, 18'059'974U);
  EXPECT_EQ(generated, 245'896U);
  EXPECT_EQ(trace->back().arrival / std::chrono::seconds(1), 3'435);
}

// Of the mirrored ways, which have the most to handle.
TEST(ShippedTraceTest, ItsFirstMinutesMeetEverythingThatAStagerMustHandle) {
  Expected<std::vector<TraceRequest>> trace = ShippedTrace();
  ASSERT_TRUE(trace) << trace.error().message;
  trace->resize(300);
  for (const StagingWay way : {StagingWay::kPackedMirrored, StagingWay::kSeparateMirrored}) {
    SCOPED_TRACE(ToString(way));
    ReplayOptions options;
    options.staging = way;
    const std::unique_ptr<Machine> machine = NewFakeMachine(options.seed);
    const Expected<ReplayResult> result = Replay(*trace, options, *machine, [](uint32_t) {});
    ASSERT_TRUE(result) << result.error().ToString();
    EXPECT_EQ(result->failure, "");
    EXPECT_EQ(result->scheduling.finished, 300U);
    EXPECT_EQ(result->steps.verified_steps, result->steps.steps);
    EXPECT_GE(result->steps.most_in_flight, 3U);
    EXPECT_GT(result->steps.with_trim, 0U);
    EXPECT_GT(result->steps.with_stream_wait, 0U);
    EXPECT_GT(result->steps.with_full_ring, 0U);
    // A whole step is never equal to the one before; of its tensors some are.
    EXPECT_EQ(result->steps.with_skip > 0, way == StagingWay::kSeparateMirrored);
  }
}

}  // namespace
}  // namespace h2d::replay
