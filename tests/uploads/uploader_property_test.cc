// Random uploads on the simulated device: what an upload that succeeded brought is there for every
// ordered reader, what failed without having begun changed nothing, no source and no chunk is
// touched while a copy may read it, and chunks come back; with late answers, streams that stand
// still, stops, and a device that fails in any call (I1, I3, I5, I9).
//
// A run that fails prints what replays it (tests/support/random_runs.h).
#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "h2d/device/fake/host_tasks.h"
#include "h2d/tests/uploads/for_each_seed.h"
#include "h2d/tests/uploads/upload_run.h"

namespace h2d {
namespace {

using testing::ForEachSeed;
using testing::HowToReplay;
using testing::SourceFile;
using testing::UploadPlan;
using testing::UploadRun;
using testing::UploadTotals;

TEST(UploaderProperty, WhatSucceededArrivedAndWhatDidNotBeginChangedNothing) {
  const SourceFile file;
  UploadTotals sum;
  const uint64_t runs = ForEachSeed(250, [&](uint64_t seed) {
    UploadRun run(file, seed, /*with_holds=*/seed % 2 == 0);
    ASSERT_TRUE(run.Create());
    for (int step = 0; step < 25; ++step) run.Step();
    const std::string verdict = run.Verdict();
    ASSERT_EQ(verdict, "") << HowToReplay(seed) << "\n" << run.Timeline();
    sum.done += run.totals().done;
    sum.incomplete += run.totals().incomplete;
    sum.refused += run.totals().refused;
  });
  std::printf("%d runs: %d uploads done, %d incomplete, %d refused\n", static_cast<int>(runs),
              static_cast<int>(sum.done), static_cast<int>(sum.incomplete),
              static_cast<int>(sum.refused));
  if (runs > 1) {
    EXPECT_GT(sum.done, 5 * runs);
    EXPECT_GT(sum.incomplete, runs / 4) << "hardly any was incomplete: the test tests little";
    EXPECT_GT(sum.refused, runs / 4) << "hardly any was refused: the test tests little";
  }
}

TEST(UploaderProperty, HoldsForTasksThatShareAnUploader) {
  const SourceFile file;
  ForEachSeed(100, [&](uint64_t seed) {
    UploadRun run(file, seed, /*with_holds=*/false);
    ASSERT_TRUE(run.Create());
    std::vector<std::function<void()>> tasks;
    for (uint32_t task = 0; task < UploadRun::kLanes; ++task) {
      std::vector<UploadPlan> plans;
      for (int i = 0; i < 4; ++i) {
        plans.push_back(run.DrawPlan());
        plans.back().kind %= 3;  // tasks share no list of pinned buffers
      }
      tasks.push_back([&run, plans, task] {
        for (const UploadPlan& plan : plans) run.Carry(task, plan);
        run.CheckReader(task);
      });
    }
    const auto ran = RunTasks(run.fake(), std::move(tasks));
    ASSERT_TRUE(ran) << ran.error().ToString();
    const std::string verdict = run.Verdict();
    ASSERT_EQ(verdict, "") << HowToReplay(seed) << "\n" << run.Timeline();
  });
}

}  // namespace
}  // namespace h2d
