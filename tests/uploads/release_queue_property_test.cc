// Random use of a release queue on the simulated device: no source is released while a copy may
// read it, none is kept for ever, the limits hold; with late answers, streams that stand still,
// captures, and a device that fails (I1, I5, I6, I7, I10).
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
#include "h2d/tests/uploads/release_run.h"

namespace h2d {
namespace {

using testing::ForEachSeed;
using testing::HowToReplay;
using testing::ReleaseRun;
using testing::ReleaseTotals;

TEST(ReleaseQueueProperty, NoSourceEndsInFlightNoneIsKeptForEverAndTheLimitsHold) {
  ReleaseTotals totals;
  const uint64_t runs = ForEachSeed(1000, [&](uint64_t seed) {
    ReleaseRun run(seed, /*with_faults=*/seed % 2 == 0);
    for (int step = 0; step < 60; ++step) run.Step(run.Draw(ReleaseRun::kStreams));
    const std::string verdict = run.Verdict();
    ASSERT_EQ(verdict, "") << HowToReplay(seed) << "\n" << run.Timeline();
    run.AddTo(totals);
  });
  std::printf("%d runs: %d sources taken, %d refused, %d flushes put off, %d faults\n",
              static_cast<int>(runs), static_cast<int>(totals.pushed),
              static_cast<int>(totals.refused), static_cast<int>(totals.put_off),
              static_cast<int>(totals.faults));
  if (runs > 1) {
    EXPECT_GT(totals.pushed, 10 * runs);
    EXPECT_GT(totals.refused, runs / 4) << "hardly any limit was reached: the test tests little";
    EXPECT_GT(totals.put_off, runs / 8) << "hardly any flush was put off: the test tests little";
    EXPECT_GT(totals.faults, runs / 4) << "hardly any fault struck: the test tests little";
  }
}

TEST(ReleaseQueueProperty, HoldsForTasksThatShareAQueue) {
  ForEachSeed(200, [&](uint64_t seed) {
    ReleaseRun run(seed, /*with_faults=*/false);
    std::vector<std::function<void()>> tasks;
    for (uint32_t task = 0; task < 3; ++task) {
      std::vector<std::pair<uint32_t, uint32_t>> steps;  // drawn here: tasks share no generator
      for (int step = 0; step < 12; ++step)
        steps.emplace_back(run.Draw(ReleaseRun::kStreams), run.Draw(6));
      tasks.push_back([&run, steps] {
        for (const auto& [stream, draw] : steps) run.SharedStep(stream, draw);
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
