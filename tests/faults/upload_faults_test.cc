// Uploads and release queues, each under every fault: the first call of the device of each kind
// fails, then the second, until there is no such call left, in each way (fault_points.h). Whatever
// fails, what succeeded arrived, no source is touched or released while a copy may read it, chunks
// come back, the next good upload works, and nothing is kept (I5).
//
// H2D_FAULT_PLANS: with any value all scenarios, on an unkind device as well; without it a few.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "h2d/tests/faults/fault_points.h"
#include "h2d/tests/support/random_runs.h"
#include "h2d/tests/uploads/release_run.h"
#include "h2d/tests/uploads/upload_run.h"

namespace h2d::testing {
namespace {

constexpr uint64_t kChunk = UploadRun::kChunk;
constexpr uint64_t kWhole = UploadRun::kMostBytes;
constexpr uint64_t kFileBytes = 4 * UploadRun::kMostBytes;

bool All() { return std::getenv("H2D_FAULT_PLANS") != nullptr; }

// Of a device that is kind, and of one that is not.
std::vector<uint64_t> SeedsOfDevices() {
  if (All()) return {0, 5};
  return {5};
}

struct UploadScenario {
  std::string_view name;
  std::function<void(UploadRun&)> body;
  bool holds = false;  // streams stand still, and who waits gives up
  uint32_t max_chunks = 4;
  bool among_few = false;
};

std::vector<UploadScenario> UploadScenarios() {
  return {
      {"memory on three streams through chunks",
       [](UploadRun& run) {
         for (uint32_t i = 0; i < 3; ++i) run.Carry(i, {.at = i, .bytes = kWhole - 9});
         run.Carry(0, {.bytes = 3 * kChunk});
         run.CheckReader(0);
       }},
      {"a mapping and a file",
       [](UploadRun& run) {
         run.Carry(0, {.kind = UploadPlan::kMapping, .at = 7, .bytes = 3 * kChunk + 1});
         run.Carry(1, {.kind = UploadPlan::kFile, .at = 3, .bytes = 4 * kChunk + 5});
         run.CheckReader(1);
         run.Carry(0, {.kind = UploadPlan::kFile, .at = 9, .bytes = kChunk});
         run.CheckReader(0);
       }},
      {"a file that ends in the third chunk (19)",
       [](UploadRun& run) {
         run.Carry(0, {.bytes = kWhole});
         run.Carry(
             0,
             {.kind = UploadPlan::kFile, .at = kFileBytes - 2 * kChunk - 100, .bytes = 4 * kChunk});
         run.Carry(1, {.kind = UploadPlan::kFile, .at = 0, .bytes = 2 * kChunk});
         run.CheckReader(1);
       }},
      {"pinned sources, read where they lie",
       [](UploadRun& run) {
         run.Carry(0, {.kind = UploadPlan::kPinned, .at = 0, .bytes = kWhole});
         run.Carry(1, {.kind = UploadPlan::kPinned, .at = 1, .bytes = 2 * kChunk});
         run.Carry(0, {.kind = UploadPlan::kPinned, .at = 2, .bytes = 700});
         run.AskForSources();
         run.CheckReader(0);
       }},
      {"small sources",
       [](UploadRun& run) {
         for (uint32_t i = 0; i < 6; ++i) run.Carry(i % 3, {.at = i, .bytes = 60 + i});
         run.CheckReader(2);
       },
       /*holds=*/false, /*max_chunks=*/4, /*among_few=*/true},
      {"an upload that is stopped",
       [](UploadRun& run) {
         run.Carry(0, {.bytes = kWhole, .stop_after = 2 * kChunk});
         run.Carry(0, {.kind = UploadPlan::kFile, .bytes = kWhole, .stop_after = 1});
         run.Carry(0, {.bytes = kWhole});
         run.CheckReader(0);
       }},
      {"one chunk for all",
       [](UploadRun& run) {
         run.Carry(0, {.bytes = 3 * kChunk});
         run.Carry(1, {.at = 5, .bytes = 2 * kChunk});
         run.CheckReader(1);
       },
       /*holds=*/false, /*max_chunks=*/1, /*among_few=*/true},
      {"a stream that stands still beside another",
       [](UploadRun& run) {
         run.ToggleHold(0);
         run.Carry(0, {.bytes = kWhole});
         run.Carry(1, {.at = 2, .bytes = 2 * kChunk});
         run.Carry(0, {.kind = UploadPlan::kPinned, .at = 2, .bytes = kChunk});
         run.Carry(0, {.bytes = 60});
         run.ToggleHold(0);
         run.Carry(0, {.bytes = kWhole});
         run.CheckReader(0);
       },
       /*holds=*/true},
  };
}

struct Verdict {
  FaultedRun run;
  std::string timeline;
};

Verdict RunUpload(const UploadScenario& scenario, const SourceFile& file, uint64_t seed,
                  const Fault& fault, bool keep_trace) {
  UploadRun run(file, seed, scenario.holds, keep_trace);
  UploaderOptions options = UploadRun::SmallChunks();
  options.max_chunks = scenario.max_chunks;
  if (scenario.holds) options.wait_timeout = std::chrono::milliseconds(1);
  run.faulty().Inject(fault);
  const bool made = run.Create(options);
  if (made) scenario.body(run);
  Verdict verdict;
  verdict.run.struck = run.faulty().FaultCount() != 0;
  verdict.run.errors = run.totals().incomplete + run.totals().refused + (made ? 0 : 1);
  verdict.run.failure = run.Verdict();
  verdict.timeline = run.Timeline();
  return verdict;
}

// Lets `run(seed, fault, keep_trace)` fail in every way and prints what that was.
void ExpectHoldsWhateverFails(std::string_view name,
                              const std::function<Verdict(uint64_t, const Fault&, bool)>& run) {
  FaultTotals totals;
  for (const uint64_t seed : SeedsOfDevices()) {
    Fault last;
    const auto once = [&](const Fault& fault) {
      last = fault;
      return run(seed, fault, false).run;
    };
    const std::string failure = FailEachCall(once, totals);
    if (failure.empty()) continue;
    ADD_FAILURE() << name << ", seed " << seed << ": " << failure << "\n"
                  << run(seed, last, true).timeline;
  }
  std::cout << name << ": " << totals.runs << " runs, " << totals.points << " points, "
            << totals.errors << " errors\n";
  EXPECT_GT(totals.points, 0U) << name;
}

TEST(UploadFaults, AnyCallMayFailOnceOrForEverUntilNoneIsLeft) {
  const SourceFile file;
  for (const UploadScenario& scenario : UploadScenarios()) {
    if (!scenario.among_few && !All()) continue;
    // With few plans (a sanitizer's build) the shorter of the few.
    if (scenario.max_chunks != 1 && RunsFromEnvironment(1000) < 1000) continue;
    ExpectHoldsWhateverFails(scenario.name,
                             [&](uint64_t seed, const Fault& fault, bool keep_trace) {
                               return RunUpload(scenario, file, seed, fault, keep_trace);
                             });
  }
}

struct ReleaseScenario {
  std::string_view name;
  std::function<void(ReleaseRun&)> body;
};

std::vector<ReleaseScenario> ReleaseScenarios() {
  return {
      {"sources on three streams, flushed at their marks",
       [](ReleaseRun& run) {
         for (uint32_t i = 0; i < 9; ++i) run.CopyAndPush(i % 3);
         run.Poll();
         run.CopyAndPush(0);
         run.Flush(1);
         run.Poll();
       }},
      {"a stream that stands still at the hard limit",
       [](ReleaseRun& run) {
         run.ToggleHold(0);
         for (int i = 0; i < 6; ++i) run.CopyAndPush(0);
         run.CopyAndPush(1);
         run.Poll();
         run.ToggleHold(0);
         run.CopyAndPush(0);
         run.Flush(0);
       }},
      {"a capture that puts flushes off",
       [](ReleaseRun& run) {
         run.CopyAndPush(0);
         run.ToggleCapture(0);
         for (int i = 0; i < 5; ++i) run.CopyAndPush(0);
         run.Flush(0);
         run.CopyAndPush(1);
         run.Poll();
         run.ToggleCapture(0);
         run.CopyAndPush(0);
         run.Flush(0);
       }},
  };
}

Verdict RunRelease(const ReleaseScenario& scenario, uint64_t seed, const Fault& fault,
                   bool keep_trace) {
  ReleaseQueueOptions limits;
  limits.flush_items = 2;
  limits.flush_bytes = 3 * ReleaseRun::kSourceBytes;
  limits.max_items = 4;
  limits.max_bytes = 5 * ReleaseRun::kSourceBytes;
  limits.wait_timeout = std::chrono::microseconds(100);
  ReleaseRun run(seed, limits, keep_trace);
  run.faulty().Inject(fault);
  scenario.body(run);
  Verdict verdict;
  verdict.run.struck = run.faulty().FaultCount() != 0;
  verdict.run.errors = run.refusals();
  verdict.run.failure = run.Verdict();
  verdict.timeline = run.Timeline();
  return verdict;
}

TEST(ReleaseFaults, AnyCallMayFailOnceOrForEverUntilNoneIsLeft) {
  for (const ReleaseScenario& scenario : ReleaseScenarios()) {
    ExpectHoldsWhateverFails(scenario.name,
                             [&](uint64_t seed, const Fault& fault, bool keep_trace) {
                               return RunRelease(scenario, seed, fault, keep_trace);
                             });
  }
}

}  // namespace
}  // namespace h2d::testing
