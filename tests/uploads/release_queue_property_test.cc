// Random use of a release queue on the simulated device: no source is released while a copy may
// read it, none is kept for ever, the limits hold; with late answers, streams that stand still,
// captures, and a device that fails (I1, I5, I6, I7, I10).
//
// What judges. Each source is pinned memory that the queue owns: the device reports a release
// before the copy that reads it was *observed* complete, whatever order happened to run. Each is
// counted, and must have died once at the end.
//
// A run that fails prints what replays it (tests/support/random_runs.h).
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "h2d/device/fake/fake_device.h"
#include "h2d/device/fake/host_tasks.h"
#include "h2d/device/faulty/faulty_device.h"
#include "h2d/stager/release_queue.h"
#include "h2d/tests/uploads/for_each_seed.h"

namespace h2d {
namespace {

using testing::ForEachSeed;

constexpr uint64_t kSourceBytes = 64;
constexpr uint32_t kStreams = 3;

// Owns pinned memory and counts its end.
struct Source {
  PinnedBuffer memory;
  std::shared_ptr<uint64_t> ended;
  void operator()() const { ++*ended; }
};

struct Totals {
  uint64_t pushed = 0;
  uint64_t refused = 0;
  uint64_t put_off = 0;
  uint64_t faults = 0;
};

class QueueRun {
 public:
  QueueRun(uint64_t seed, bool with_faults) : random_(seed), with_faults_(with_faults) {
    FakeOptions options;
    options.choices = std::make_shared<HashChoices>(seed);
    // A call that blocks on a stream that is held would block for good, and so would every copy of
    // a confidential machine.
    options.adversaries =
        ChoiceSites::Live().Without(ChoiceSite::kEnqueueBlocks).Without(ChoiceSite::kConfidential);
    fake_ = FakeDevice::Create(options);
    faulty_ = FaultyDevice::Create(fake_);
    for (const char* name : {"a", "b", "c"}) {
      streams_.push_back(fake_->NewStream(name));
      targets_.push_back(fake_->AllocateDevice(kSourceBytes).value());
    }
    limits_.flush_items = 1 + Draw(4);
    limits_.flush_bytes = kSourceBytes * (1 + Draw(6));
    limits_.max_items = limits_.flush_items + Draw(4);
    limits_.max_bytes = limits_.flush_bytes + kSourceBytes * Draw(4);
    limits_.wait_timeout = std::chrono::microseconds(Draw(2) * 100);
    queue_ = *ReleaseQueue::Create(faulty_, limits_);
    held_.assign(kStreams, false);
    capturing_.assign(kStreams, false);
  }

  FakeDevice& fake() { return *fake_; }

  void Step(uint32_t stream) {
    switch (Draw(12)) {
      case 0:
        return Flush(stream);
      case 1:
      case 2:
        return Poll();
      case 3:
        return ToggleHold(stream);
      case 4:
        return ToggleCapture(stream);
      case 5:
        return InjectFault();
      case 6:
        return fake_->AdvanceTime(std::chrono::microseconds(20));
      default:
        return CopyAndPush(stream);
    }
  }

  // What the tasks of a run of several do: no holds, captures or faults, which are the device's.
  void SharedStep(uint32_t stream, uint32_t draw) {
    if (draw == 0) return Flush(stream);
    if (draw == 1) return Poll();
    CopyAndPush(stream);
  }

  // Ends the run; empty when all was as it should be.
  std::string Verdict() {
    faulty_->ClearFaults();
    for (uint32_t i = 0; i < kStreams; ++i) {
      if (held_[i]) ToggleHold(i);
      if (capturing_[i]) ToggleCapture(i);
    }
    // All but what the queue refused: that stayed here, and its copies are complete by then.
    for (int round = 0; round < 2; ++round) {
      if (auto drained = queue_->Drain(); !drained) Fail(drained.error().ToString());
    }
    const ReleaseQueueStats stats = queue_->stats();
    if (stats.held_items != 0 || stats.held_bytes != 0) Fail("sources are held after a drain");
    if (stats.released != pushed_ || *ended_ != pushed_) Fail("a source was not released once");
    queue_.reset();
    if (!fake_->SynchronizeDevice()) Fail("the device did not come to rest");
    refused_.clear();
    if (!fake_->hazards().empty()) Fail(fake_->hazards().front().ToString());
    return failure_;
  }
  std::string Timeline() const { return fake_->Timeline(); }

  void AddTo(Totals& totals) const {
    totals.pushed += pushed_;
    totals.refused += refusals_;
    totals.put_off += put_off_;
    totals.faults += faulty_->FaultCount();
  }

  uint32_t Draw(uint32_t n) { return static_cast<uint32_t>(random_() % n); }

 private:
  void CopyAndPush(uint32_t stream) {
    if (capturing_[stream]) return PushNothing(stream);
    auto memory = fake_->AllocatePinned(kSourceBytes);
    if (!memory) return Fail(memory.error().ToString());
    const auto bytes = memory->bytes();
    // Whatever it answers: a copy whose call failed may run.
    static_cast<void>(faulty_->CopyAsync(targets_[stream], bytes, streams_[stream]));
    Push(HeldSource(Source{std::move(*memory), ended_}, kSourceBytes), stream);
  }
  // A source that was read before, by work that is long complete, pushed during a capture.
  void PushNothing(uint32_t stream) {
    auto memory = fake_->AllocatePinned(kSourceBytes);
    if (!memory) return Fail(memory.error().ToString());
    Push(HeldSource(Source{std::move(*memory), ended_}, kSourceBytes), stream);
  }
  void Push(HeldSource source, uint32_t stream) {
    const auto result = queue_->Push(std::move(source), streams_[stream]);
    if (result) {
      ++pushed_;
      if (source) Fail("a source that was taken is still the caller's");
    } else {
      ++refusals_;
      if (!source) return Fail("a source that was refused is gone");
      refused_.push_back(std::move(source));
    }
    const ReleaseQueueStats stats = queue_->stats();
    if (stats.held_items > kStreams * limits_.max_items) Fail("more items are held than may be");
    if (stats.held_bytes > kStreams * limits_.max_bytes) Fail("more bytes are held than may be");
  }
  void Flush(uint32_t stream) {
    const auto flushed = queue_->Flush(streams_[stream]);
    if (flushed && *flushed == FlushOutcome::kPutOff) ++put_off_;
    if (flushed && (*flushed == FlushOutcome::kFlushed) && capturing_[stream])
      Fail("a flush went into a capture");
  }
  void Poll() { static_cast<void>(queue_->Poll()); }
  void ToggleHold(uint32_t stream) {
    const auto done =
        held_[stream] ? fake_->Release(streams_[stream]) : fake_->Hold(streams_[stream]);
    if (!done) return Fail(done.error().ToString());
    held_[stream] = !held_[stream];
  }
  void ToggleCapture(uint32_t stream) {
    if (!capturing_[stream]) {
      if (auto begun = fake_->BeginCapture(streams_[stream]); !begun)
        return Fail(begun.error().ToString());
    } else if (auto graph = fake_->EndCapture(streams_[stream]); !graph) {
      return Fail("a capture was invalidated: " + graph.error().ToString());
    } else if (graph->operations() != 0) {
      return Fail("something was recorded into a capture");
    }
    capturing_[stream] = !capturing_[stream];
  }
  void InjectFault() {
    if (!with_faults_) return;
    constexpr CallKind kKinds[] = {CallKind::kRecord,      CallKind::kQuery,
                                   CallKind::kWaitAny,     CallKind::kInspect,
                                   CallKind::kCreateEvent, CallKind::kCopyAsync};
    const CallKind kind = kKinds[Draw(6)];
    faulty_->Inject({.kind = kind,
                     .call = faulty_->CallCount(kind) + 1 + Draw(2),
                     .timing = Draw(2) == 0 ? FaultTiming::kBeforeCall : FaultTiming::kAfterCall});
  }
  void Fail(std::string what) {
    if (failure_.empty()) failure_ = std::move(what);
  }

  std::mt19937_64 random_;
  const bool with_faults_;
  std::shared_ptr<FakeDevice> fake_;
  std::shared_ptr<FaultyDevice> faulty_;
  std::vector<Stream> streams_;
  std::vector<DevicePtr> targets_;
  ReleaseQueueOptions limits_;
  std::unique_ptr<ReleaseQueue> queue_;
  std::vector<bool> held_;
  std::vector<bool> capturing_;
  std::vector<HeldSource> refused_;
  const std::shared_ptr<uint64_t> ended_ = std::make_shared<uint64_t>(0);
  uint64_t pushed_ = 0;
  uint64_t refusals_ = 0;
  uint64_t put_off_ = 0;
  std::string failure_;
};

TEST(ReleaseQueueProperty, NoSourceEndsInFlightNoneIsKeptForEverAndTheLimitsHold) {
  Totals totals;
  const uint64_t runs = ForEachSeed(1000, [&](uint64_t seed) {
    QueueRun run(seed, /*with_faults=*/seed % 2 == 0);
    for (int step = 0; step < 60; ++step) run.Step(run.Draw(kStreams));
    const std::string verdict = run.Verdict();
    ASSERT_EQ(verdict, "") << testing::HowToReplay(seed) << "\n" << run.Timeline();
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
    QueueRun run(seed, /*with_faults=*/false);
    std::vector<std::function<void()>> tasks;
    for (uint32_t task = 0; task < 3; ++task) {
      std::vector<std::pair<uint32_t, uint32_t>> steps;  // drawn here: tasks share no generator
      for (int step = 0; step < 12; ++step) steps.emplace_back(run.Draw(kStreams), run.Draw(6));
      tasks.push_back([&run, steps] {
        for (const auto& [stream, draw] : steps) run.SharedStep(stream, draw);
      });
    }
    const auto ran = RunTasks(run.fake(), std::move(tasks));
    ASSERT_TRUE(ran) << ran.error().ToString();
    const std::string verdict = run.Verdict();
    ASSERT_EQ(verdict, "") << testing::HowToReplay(seed) << "\n" << run.Timeline();
  });
}

}  // namespace
}  // namespace h2d
