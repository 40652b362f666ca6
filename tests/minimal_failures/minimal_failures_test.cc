// Each planted fault shrinks to a plan that a person reads at a glance, and its token is all that
// is needed to see it again.
#include <gtest/gtest.h>

#include "h2d/tests/minimal_failures/minimal_failure.h"
#include "h2d/tests/support/fake_harness.h"
#include "h2d/tests/support/plan.h"
#include "h2d/tests/support/run_plan.h"
#include "h2d/tests/wrong_stagers/little_stager.h"

namespace h2d::testing {
namespace {

constexpr size_t kAtAGlance = 8;  // operations

class MinimalFailures : public ::testing::TestWithParam<uint32_t> {};

TEST_P(MinimalFailures, AreShortAndReplayFromTheirToken) {
  const auto flaw = static_cast<Flaw>(GetParam());
  const auto found = FindMinimalFailure(flaw);
  ASSERT_TRUE(found.has_value()) << ToString(flaw);
  EXPECT_LE(found->plan.ops.size(), kAtAGlance) << PlanToString(found->plan);
  const auto bytes = PlanFromToken(found->token);
  ASSERT_TRUE(bytes.has_value());
  const Plan again = DecodePlan(*bytes);
  const RunResult result =
      RunPlan(again, *MakeFakeHarness(again, {.keep_trace = true}), LittleStagerWith(flaw));
  EXPECT_EQ(result.failure, found->result.failure);
  EXPECT_EQ(result.trace_hash, found->result.trace_hash);
  EXPECT_EQ(result.timeline, found->result.timeline);
}

INSTANTIATE_TEST_SUITE_P(EachFlaw, MinimalFailures, ::testing::Range(1U, kFlaws));

}  // namespace
}  // namespace h2d::testing
