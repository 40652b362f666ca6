// Whole runs on the simulated device: no race where there is none, and each planted one found.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "h2d/examples/replay/fake_machine.h"
#include "h2d/examples/replay/replay.h"
#include "h2d/examples/replay/small_run.h"
#include "h2d/examples/replay/staging_way.h"

namespace h2d::replay {
namespace {

Expected<ReplayResult> RunOnFake(const ReplayOptions& options) {
  const std::unique_ptr<Machine> machine = NewFakeMachine(options.seed);
  return Replay(SmallTrace(), options, *machine, [](uint32_t) {});
}

Expected<ReplayResult> RunPlanted(Plant plant, StagingWay way = StagingWay::kPackedMirrored) {
  ReplayOptions options = SmallOptions();
  options.plant = plant;
  options.staging = way;
  return RunOnFake(options);
}

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class EveryWay : public testing::TestWithParam<StagingWay> {};
INSTANTIATE_TEST_SUITE_P(Staging, EveryWay, testing::ValuesIn(kAllWays), [](const auto& way) {
  std::string name(ToString(way.param));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST_P(EveryWay, ARunIsVerifiedWithoutARaceWhateverTheDeviceChooses) {
  // A run with a copy for each tensor takes several times as long.
  const uint64_t seeds = IsPacked(GetParam()) ? 8 : 2;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ReplayOptions options = SmallOptions();
    options.staging = GetParam();
    options.seed = seed;
    const Expected<ReplayResult> result = RunOnFake(options);
    ASSERT_TRUE(result) << result.error().ToString();
    EXPECT_EQ(result->failure, "");
    EXPECT_EQ(result->hazards, 0U);
    EXPECT_EQ(result->scheduling.finished + result->never_fit.size(), 50U);
    EXPECT_EQ(result->steps.verified_steps, result->steps.steps);
    // Rows of block tables that a request keeps are not even written.
    if (GetParam() == StagingWay::kPackedMirrored) {
      EXPECT_LT(result->stager.bytes_asked, result->steps.verified_bytes);
    } else {
      EXPECT_EQ(result->stager.bytes_asked, result->steps.verified_bytes);
    }
  }
}

TEST_P(EveryWay, StepsOverlapAndMeetEverythingThatAStagerMustHandle) {
  ReplayOptions options = SmallOptions();
  options.staging = GetParam();
  const Expected<ReplayResult> result = RunOnFake(options);
  ASSERT_TRUE(result) << result.error().ToString();
  EXPECT_GE(result->steps.most_in_flight, 3U);
  EXPECT_EQ(result->steps.with_trim > 0, IsMirrored(GetParam()));
  // Some tensors are equal to what is there; a step as a whole never is.
  EXPECT_EQ(result->steps.with_skip > 0, GetParam() == StagingWay::kSeparateMirrored);
  // Where the order of copies is the library's: a mirror's, a slab's.
  EXPECT_EQ(result->steps.with_stream_wait > 0, GetParam() != StagingWay::kSeparate);
  EXPECT_GT(result->steps.with_full_ring, 0U);
  EXPECT_GT(result->scheduling.preempted, 0U);
}

TEST(ReplayFakeTest, ARunIsAFunctionOfItsSeed) {
  const ReplayOptions options = SmallOptions();
  const Expected<ReplayResult> first = RunOnFake(options);
  const Expected<ReplayResult> second = RunOnFake(options);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->stager.slot_waits, second->stager.slot_waits);
  EXPECT_EQ(first->stager.stream_waits, second->stager.stream_waits);
  EXPECT_EQ(first->stager.bytes_sent, second->stager.bytes_sent);
  EXPECT_EQ(first->steps.most_in_flight, second->steps.most_in_flight);
  EXPECT_EQ(first->steps.staging_ns, second->steps.staging_ns);
}

// What the engine does wrong is found however it stages.
TEST_P(EveryWay, AnOverwriteOfWhatAGraphReadsIsFound) {
  const Expected<ReplayResult> result = RunPlanted(Plant::kWar, GetParam());
  ASSERT_TRUE(result) << result.error().ToString();
  EXPECT_GT(result->hazards, 0U);
  EXPECT_TRUE(Contains(result->failure, "does not wait for an event recorded on graph"))
      << result->failure;
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

// The next step's copy writes what the graph of the step before may still be reading.
TEST(ReplayFakeTest, ASlabThatTwoStepsInFlightShareIsFoundAtTheSecondStep) {
  const Expected<ReplayResult> result = RunPlanted(Plant::kOneSlab);
  ASSERT_TRUE(result) << result.error().ToString();
  EXPECT_GT(result->hazards, 0U);
  EXPECT_TRUE(Contains(result->failure, "does not wait for an event recorded on graph"))
      << result->failure;
  EXPECT_EQ(result->steps.steps, 2U);
}

// The writer takes the slab for unchanged and does not send the field again.
TEST(ReplayFakeTest, AGraphThatWritesAnUndeclaredFieldIsFoundByItsBytesAndIsNoRace) {
  for (const StagingWay way : {StagingWay::kPackedMirrored, StagingWay::kSeparateMirrored}) {
    const Expected<ReplayResult> result = RunPlanted(Plant::kGraphWrites, way);
    ASSERT_TRUE(result) << result.error().ToString();
    EXPECT_EQ(result->hazards, 0U);
    EXPECT_EQ(result->steps.mismatches, 1U);
    EXPECT_TRUE(Contains(result->failure, "read 0 and not")) << result->failure;
    EXPECT_TRUE(Contains(result->failure, "of its seeds.")) << result->failure;
    EXPECT_TRUE(Contains(result->failure, ": seeds, ")) << "no legend\n" << result->failure;
  }
}

TEST(ReplayFakeTest, AMirrorForTwoDestinationsIsFoundByItsBytesAndIsNoRace) {
  const Expected<ReplayResult> result = RunPlanted(Plant::kStaleMirror);
  ASSERT_TRUE(result) << result.error().ToString();
  EXPECT_EQ(result->hazards, 0U);
  EXPECT_EQ(result->steps.mismatches, 1U);
  EXPECT_TRUE(Contains(result->failure, "The graph of step ")) << result->failure;
  EXPECT_TRUE(Contains(result->failure, "The device's last operations")) << result->failure;
}

}  // namespace
}  // namespace h2d::replay
