// Whole runs on the simulated device: no race where there is none, and each planted one found.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "h2d/examples/replay/fake_machine.h"
#include "h2d/examples/replay/replay.h"
#include "h2d/examples/replay/small_run.h"

namespace h2d::replay {
namespace {

Expected<ReplayResult> RunOnFake(const ReplayOptions& options) {
  const std::unique_ptr<Machine> machine = NewFakeMachine(options.seed);
  return Replay(SmallTrace(), options, *machine, [](uint32_t) {});
}

Expected<ReplayResult> RunPlanted(Plant plant) {
  ReplayOptions options = SmallOptions();
  options.plant = plant;
  return RunOnFake(options);
}

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(ReplayFakeTest, ARunIsVerifiedWithoutARaceWhateverTheDeviceChooses) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ReplayOptions options = SmallOptions();
    options.seed = seed;
    const Expected<ReplayResult> result = RunOnFake(options);
    ASSERT_TRUE(result) << result.error().ToString();
    EXPECT_EQ(result->failure, "");
    EXPECT_EQ(result->hazards, 0U);
    EXPECT_EQ(result->scheduling.finished + result->never_fit.size(), 50U);
    EXPECT_EQ(result->steps.verified_steps, result->steps.steps);
    EXPECT_EQ(result->steps.verified_bytes, result->stager.bytes_asked);
  }
}

TEST(ReplayFakeTest, StepsOverlapAndMeetEverythingThatAStagerMustHandle) {
  const Expected<ReplayResult> result = RunOnFake(SmallOptions());
  ASSERT_TRUE(result) << result.error().ToString();
  EXPECT_GE(result->steps.most_in_flight, 3U);
  EXPECT_GT(result->steps.with_skip, 0U);
  EXPECT_GT(result->steps.with_trim, 0U);
  EXPECT_GT(result->steps.with_stream_wait, 0U);
  EXPECT_GT(result->steps.with_full_ring, 0U);
  EXPECT_GT(result->scheduling.preempted, 0U);
}

TEST(ReplayFakeTest, WithoutMirrorsTheRunIsRightToo) {
  ReplayOptions options = SmallOptions();
  options.mirrors = false;
  const Expected<ReplayResult> result = RunOnFake(options);
  ASSERT_TRUE(result) << result.error().ToString();
  EXPECT_EQ(result->failure, "");
  EXPECT_EQ(result->stager.bytes_sent, result->stager.bytes_asked);
}

// A buffer is written while a copy that waits behind the graph has not read it yet.
TEST(ReplayFakeTest, ARingThatDoesNotWaitIsFoundAtTheBufferThatItOverwrites) {
  const Expected<ReplayResult> result = RunPlanted(Plant::kNoWait);
  ASSERT_TRUE(result) << result.error().ToString();
  EXPECT_GT(result->hazards, 0U);
  EXPECT_TRUE(Contains(result->failure, "pinned")) << result->failure;
  EXPECT_TRUE(Contains(result->failure, "plan")) << result->failure;
}

// The graph reads what a copy on the plan's stream may still be writing.
TEST(ReplayFakeTest, ARecordThatComesAfterTheWaitIsFoundAtTheFirstGraph) {
  const Expected<ReplayResult> result = RunPlanted(Plant::kLateRecord);
  ASSERT_TRUE(result) << result.error().ToString();
  EXPECT_GT(result->hazards, 0U);
  EXPECT_TRUE(Contains(result->failure, "graph")) << result->failure;
  EXPECT_LE(result->steps.steps, 2U);
}

// A copy on the plan's stream writes what the graph of two steps before may still be reading.
TEST(ReplayFakeTest, AnOverwriteOfWhatAGraphReadsIsFound) {
  const Expected<ReplayResult> result = RunPlanted(Plant::kWar);
  ASSERT_TRUE(result) << result.error().ToString();
  EXPECT_GT(result->hazards, 0U);
  EXPECT_TRUE(Contains(result->failure, "graph")) << result->failure;
  EXPECT_TRUE(Contains(result->failure, "plan")) << result->failure;
}

TEST(ReplayFakeTest, AMirrorForTwoDestinationsIsFoundByItsBytesAndIsNoRace) {
  const Expected<ReplayResult> result = RunPlanted(Plant::kStaleMirror);
  ASSERT_TRUE(result) << result.error().ToString();
  EXPECT_EQ(result->hazards, 0U);
  EXPECT_EQ(result->steps.mismatches, 1U);
  EXPECT_TRUE(Contains(result->failure, "The graph of step ")) << result->failure;
  EXPECT_TRUE(Contains(result->failure, "The device's last operations")) << result->failure;
}

TEST(ReplayFakeTest, ARunIsAFunctionOfItsSeed) {
  const Expected<ReplayResult> first = RunOnFake(SmallOptions());
  const Expected<ReplayResult> second = RunOnFake(SmallOptions());
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->stager.slot_waits, second->stager.slot_waits);
  EXPECT_EQ(first->stager.stream_waits, second->stager.stream_waits);
  EXPECT_EQ(first->stager.bytes_sent, second->stager.bytes_sent);
  EXPECT_EQ(first->steps.most_in_flight, second->steps.most_in_flight);
}

}  // namespace
}  // namespace h2d::replay
