#include "h2d/examples/replay/step_shape.h"

#include <gtest/gtest.h>

#include <vector>

namespace h2d::replay {
namespace {

TraceRequest Request(uint32_t context, uint32_t generated) {
  return TraceRequest{std::chrono::nanoseconds(0), context, generated};
}

TEST(StepShapeTest, GraphsDoubleUpToTheBudget) {
  const std::vector<TraceRequest> trace = {Request(10, 1)};
  SchedulerOptions options;
  EXPECT_EQ(ShapeFor(trace, options)->token_sizes,
            (std::vector<uint32_t>{64, 128, 256, 512, 1024, 2048}));
  options.max_batched_tokens = 100;
  EXPECT_EQ(ShapeFor(trace, options)->token_sizes, (std::vector<uint32_t>{64, 100}));
  options.max_batched_tokens = 20;
  EXPECT_EQ(ShapeFor(trace, options)->token_sizes, (std::vector<uint32_t>{20}));
}

TEST(StepShapeTest, AStepRunsTheSmallestGraphThatHoldsIt) {
  const std::vector<TraceRequest> trace = {Request(10, 1)};
  const StepShape shape = *ShapeFor(trace, {});
  EXPECT_EQ(shape.token_sizes[shape.GraphFor(1)], 64U);
  EXPECT_EQ(shape.token_sizes[shape.GraphFor(64)], 64U);
  EXPECT_EQ(shape.token_sizes[shape.GraphFor(65)], 128U);
  EXPECT_EQ(shape.token_sizes[shape.GraphFor(2048)], 2048U);
}

TEST(StepShapeTest, BlockTablesAreAsWideAsTheLongestRequestThatFits) {
  const std::vector<TraceRequest> trace = {Request(33, 1), Request(60, 6), Request(1000, 1)};
  SchedulerOptions options;
  options.block_size = 16;
  options.kv_blocks = 10;
  EXPECT_EQ(ShapeFor(trace, options)->table_width, 5U);  // 65 tokens: the last one is not cached
  options.kv_blocks = 4;
  EXPECT_EQ(ShapeFor(trace, options)->table_width, 3U);
}

TEST(StepShapeTest, BlockTablesThatNobodyWouldStageAreRefused) {
  const std::vector<TraceRequest> trace = {Request(100'000, 1)};
  SchedulerOptions options;
  options.max_batch = 64;
  options.block_size = 1;
  options.kv_blocks = 1'000'000;
  const Expected<StepShape> shape = ShapeFor(trace, options);
  ASSERT_FALSE(shape);
  EXPECT_NE(shape.error().message.find("64 rows of 100000 blocks have 25600000 bytes"),
            std::string::npos)
      << shape.error().message;
}

}  // namespace
}  // namespace h2d::replay
