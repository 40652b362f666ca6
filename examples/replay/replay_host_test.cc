// Whole runs on host memory: what was staged is right, step for step.
#include <gtest/gtest.h>

#include <vector>

#include "h2d/examples/replay/host_machine.h"
#include "h2d/examples/replay/replay.h"
#include "h2d/examples/replay/report.h"
#include "h2d/examples/replay/small_run.h"
#include "h2d/examples/replay/staging_way.h"

namespace h2d::replay {
namespace {

Expected<ReplayResult> RunOnHost(const ReplayOptions& options) {
  const std::unique_ptr<Machine> machine = NewHostMachine();
  return Replay(SmallTrace(), options, *machine, [](uint32_t) {});
}

TEST(ReplayHostTest, EveryStepIsVerifiedAndEveryRequestAccountedFor) {
  const Expected<ReplayResult> result = RunOnHost(SmallOptions());
  ASSERT_TRUE(result) << result.error().ToString();
  EXPECT_EQ(result->failure, "");
  EXPECT_EQ(result->scheduling.finished + result->never_fit.size(), 50U);
  EXPECT_GT(result->scheduling.preempted, 0U);
  EXPECT_EQ(result->steps.verified_steps, result->steps.steps);
  EXPECT_EQ(result->stager.copies_asked, result->steps.steps);
  EXPECT_GT(result->steps.with_trim, 0U);
}

TEST(ReplayHostTest, WithMirrorsFewerThanHalfOfTheBytesTravel) {
  ReplayOptions options = SmallOptions();
  options.staging = StagingWay::kSeparate;
  const Expected<ReplayResult> plain = RunOnHost(options);
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->steps.verified_bytes, plain->stager.bytes_sent);
  for (const StagingWay way : {StagingWay::kSeparateMirrored, StagingWay::kPackedMirrored}) {
    options.staging = way;
    const Expected<ReplayResult> mirrored = RunOnHost(options);
    ASSERT_TRUE(mirrored);
    EXPECT_EQ(mirrored->steps.steps, plain->steps.steps);
    EXPECT_EQ(mirrored->steps.verified_bytes, plain->steps.verified_bytes);
    EXPECT_LT(mirrored->stager.bytes_sent, plain->stager.bytes_sent / 2);
  }
}

TEST(ReplayHostTest, AMirrorForTwoDestinationsIsFoundByItsBytes) {
  ReplayOptions options = SmallOptions();
  options.plant = Plant::kStaleMirror;
  const Expected<ReplayResult> result = RunOnHost(options);
  ASSERT_TRUE(result) << result.error().ToString();
  EXPECT_EQ(result->steps.mismatches, 1U);  // it stops there
  EXPECT_NE(result->failure.find("The graph of step "), std::string::npos) << result->failure;
}

TEST(ReplayHostTest, AGraphThatWritesAnUndeclaredFieldIsFoundByItsBytes) {
  ReplayOptions options = SmallOptions();
  options.plant = Plant::kGraphWrites;
  const Expected<ReplayResult> result = RunOnHost(options);
  ASSERT_TRUE(result) << result.error().ToString();
  EXPECT_EQ(result->steps.mismatches, 1U);
  EXPECT_NE(result->failure.find("of its seeds."), std::string::npos) << result->failure;
}

TEST(ReplayHostTest, OptionsThatCannotRunAreAnError) {
  ReplayOptions options = SmallOptions();
  options.slots = 1'000'000;
  const Expected<ReplayResult> result = RunOnHost(options);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
}

TEST(ReplayHostTest, TheReportShowsOneColumnForEachRun) {
  const Expected<ReplayResult> result = RunOnHost(SmallOptions());
  ASSERT_TRUE(result);
  const std::vector<ReportColumn> columns = {{"one", &*result}, {"other", &*result}};
  const std::string table = ReportTable(columns);
  for (const char* part :
       {"one", "other", "steps", "copies asked", "trimmed", "skipped", "graphs read", "saved",
        "host time", "waits for a slot", "steps verified", "hazards"}) {
    EXPECT_NE(table.find(part), std::string::npos) << part;
  }
}

TEST(ReplayHostTest, RequestsThatCanNeverFitAreNamed) {
  ReplayOptions options = SmallOptions();
  options.scheduler.kv_blocks = 15;
  const Expected<ReplayResult> result = RunOnHost(options);
  ASSERT_TRUE(result) << result.error().ToString();
  ASSERT_GT(result->never_fit.size(), 5U);
  EXPECT_EQ(result->scheduling.finished + result->never_fit.size(), 50U);
  const std::string text = NeverFitText(SmallTrace(), options.scheduler, result->never_fit);
  EXPECT_NE(text.find("and the cache has 15: it can never fit"), std::string::npos) << text;
  EXPECT_NE(text.find(std::to_string(result->never_fit.size() - 5) + " more can never fit"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace h2d::replay
