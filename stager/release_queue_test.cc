// What a release queue does with its sources, one rule a test, on the simulated device.
#include "h2d/stager/release_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "h2d/device/fake/fake_device.h"
#include "h2d/device/fake/host_tasks.h"
#include "h2d/device/faulty/faulty_device.h"
#include "h2d/device/host/host_device.h"
#include "h2d/stager/staging.h"

namespace h2d {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

class ReleaseQueueTest : public ::testing::Test {
 protected:
  void TearDown() override {
    for (const Stream& stream : {a_, b_}) static_cast<void>(fake_->Release(stream));
    queue_.reset();
    for (const Hazard& hazard : fake_->hazards()) ADD_FAILURE() << hazard.ToString();
  }

  void Make(const ReleaseQueueOptions& options) {
    auto queue = ReleaseQueue::Create(faulty_, options);
    ASSERT_TRUE(queue) << queue.error().ToString();
    queue_ = std::move(*queue);
  }

  // A source that counts its release.
  HeldSource Counted(uint64_t bytes = 64) {
    return HeldSource([count = released_] { ++*count; }, bytes);
  }
  int released() const { return *released_; }
  Expected<void> Push(const Stream& stream, uint64_t bytes = 64) {
    return queue_->Push(Counted(bytes), stream);
  }
  // Copies from fresh pinned memory, which the queue then owns: the simulated device reports it
  // when that is released too early.
  void CopyAndPush(const Stream& stream) {
    auto pinned = fake_->AllocatePinned(64);
    ASSERT_TRUE(pinned);
    ASSERT_TRUE(fake_->CopyAsync(target_, pinned->bytes(), stream));
    ASSERT_TRUE(queue_->Push(HeldSource(std::move(*pinned)), stream));
  }
  uint64_t Poll() {
    auto polled = queue_->Poll();
    EXPECT_TRUE(polled) << polled.error().ToString();
    return polled.value_or(0);
  }
  FlushOutcome Flush(const Stream& stream) {
    auto flushed = queue_->Flush(stream);
    EXPECT_TRUE(flushed) << flushed.error().ToString();
    return flushed.value_or(FlushOutcome::kNothing);
  }
  void ExpectError(const Expected<void>& result, ErrorCode code) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, code) << result.error().ToString();
    EXPECT_EQ(result.error().message.back(), '.');
  }
  void BusyFor(const Stream& stream, nanoseconds duration) {
    KernelSpec kernel;
    kernel.name = "busy";
    kernel.duration = duration;
    ASSERT_TRUE(fake_->Launch(stream, std::move(kernel)));
  }

  std::shared_ptr<int> released_ = std::make_shared<int>(0);
  std::shared_ptr<FakeDevice> fake_ = FakeDevice::Create();
  std::shared_ptr<FaultyDevice> faulty_ = FaultyDevice::Create(fake_);
  Stream a_ = fake_->NewStream("a");
  Stream b_ = fake_->NewStream("b");
  DevicePtr target_ = *fake_->AllocateDevice(64);
  std::unique_ptr<ReleaseQueue> queue_ = *ReleaseQueue::Create(faulty_);
};

// a: [held ... copy ... event]    the source stays until the event was *seen* complete
TEST_F(ReleaseQueueTest, ASourceIsReleasedOnceItsReadWasSeenAndNotBefore) {
  ASSERT_TRUE(fake_->Hold(a_));
  CopyAndPush(a_);
  ASSERT_TRUE(Push(a_));
  EXPECT_EQ(Flush(a_), FlushOutcome::kFlushed);
  EXPECT_EQ(Poll(), 0U);
  ASSERT_TRUE(fake_->Release(a_));
  fake_->RunUntilIdle();
  EXPECT_EQ(released(), 0);  // complete, but nobody has looked
  EXPECT_EQ(Poll(), 2U);
  EXPECT_EQ(released(), 1);
  EXPECT_EQ(queue_->stats().held_items, 0U);
  EXPECT_EQ(queue_->stats().held_bytes, 0U);
}

TEST_F(ReleaseQueueTest, AnythingThatOwnsMemoryIsTaken) {
  const auto shared = std::make_shared<std::vector<float>>(10);
  ASSERT_TRUE(queue_->Push(HeldSource(std::shared_ptr(shared), 40), a_));
  ASSERT_TRUE(queue_->Push(HeldSource(std::vector<double>(5)), a_));
  ASSERT_TRUE(queue_->Push(HeldSource(std::make_unique<std::array<char, 7>>(), 7), a_));
  EXPECT_EQ(queue_->stats().held_bytes, 40U + 40U + 7U);
  EXPECT_EQ(shared.use_count(), 2);
  ASSERT_TRUE(queue_->Drain());
  EXPECT_EQ(shared.use_count(), 1);
}

// What the device reads would stay behind when such an owner is moved.
TEST_F(ReleaseQueueTest, OwnersWhoseBytesMoveWithThemAreRefused) {
  EXPECT_TRUE((std::is_constructible_v<HeldSource, std::vector<int>>));
  EXPECT_FALSE((std::is_constructible_v<HeldSource, std::array<int, 4>>));
  EXPECT_FALSE((std::is_constructible_v<HeldSource, std::string>));
  EXPECT_FALSE((std::is_constructible_v<HeldSource, std::array<int, 4>, uint64_t>));
  EXPECT_FALSE((std::is_constructible_v<HeldSource, std::u16string, uint64_t>));
  EXPECT_TRUE((std::is_constructible_v<HeldSource, std::unique_ptr<std::string>, uint64_t>));
}

TEST_F(ReleaseQueueTest, ACallbackThatIsEmptyIsNotCalled) {
  ASSERT_TRUE(queue_->Push(HeldSource(std::function<void()>(), 8), a_));
  ASSERT_TRUE(queue_->Push(HeldSource(static_cast<void (*)()>(nullptr), 8), a_));
  ASSERT_TRUE(queue_->Drain());
  EXPECT_EQ(queue_->stats().released, 2U);
}

TEST_F(ReleaseQueueTest, AFlushMarkIsReachedByItemsOrByBytes) {
  Make({.flush_items = 3, .flush_bytes = 1000});
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(Push(a_));
  EXPECT_EQ(queue_->stats().flushes, 0U);
  ASSERT_TRUE(Push(a_));
  EXPECT_EQ(queue_->stats().flushes, 1U);
  ASSERT_TRUE(Push(a_, 999));
  EXPECT_EQ(queue_->stats().flushes, 1U);
  ASSERT_TRUE(Push(a_, 1));
  EXPECT_EQ(queue_->stats().flushes, 2U);
  ASSERT_TRUE(Push(b_, 999));  // marks are per stream
  EXPECT_EQ(queue_->stats().flushes, 2U);
}

// The queue knows of no policy: what is large does not wait for a mark because its caller flushes.
TEST_F(ReleaseQueueTest, ACallerActsOnThePolicyThatSaysWhatIsReleasedEarly) {
  const StagingPolicy policy{.flush_above_bytes = 1000};
  for (const uint64_t bytes : {uint64_t{1000}, uint64_t{1001}}) {
    ASSERT_TRUE(Push(a_, bytes));
    if (Staging::Of(bytes, MemoryKind::kPinned, policy).flush_after) {
      EXPECT_EQ(Flush(a_), FlushOutcome::kFlushed);
    }
    fake_->RunUntilIdle();
    EXPECT_EQ(Poll(), bytes > 1000 ? 2U : 0U) << bytes;
  }
}

// The queue that others use waits for the batch before the last whenever it flushes.
TEST_F(ReleaseQueueTest, AFlushNeverWaitsBelowTheLimit) {
  Make({.flush_items = 1, .max_items = 100});
  ASSERT_TRUE(fake_->Hold(a_));
  const uint64_t waits = fake_->counters().waits;
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Push(a_));
  EXPECT_EQ(queue_->stats().flushes, 100U);
  EXPECT_EQ(fake_->counters().waits, waits);
  EXPECT_EQ(queue_->stats().waits, 0U);
}

TEST_F(ReleaseQueueTest, AtTheLimitAPushWaitsForItsOwnStream) {
  Make({.flush_items = 2, .max_items = 2});
  BusyFor(a_, milliseconds(5));
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(Push(a_));
  EXPECT_EQ(released(), 0);
  ASSERT_TRUE(Push(a_));
  EXPECT_EQ(released(), 2);
  EXPECT_EQ(queue_->stats().waits, 1U);
}

TEST_F(ReleaseQueueTest, AtTheLimitWhatIsOpenIsFlushedFirst) {
  Make({.flush_items = 2, .max_items = 2});
  ASSERT_TRUE(Push(a_));
  auto room = queue_->Reserve(64, a_);
  ASSERT_TRUE(room);
  ASSERT_TRUE(Push(a_));  // the first one gave way although no mark was reached
  EXPECT_EQ(released(), 1);
}

TEST_F(ReleaseQueueTest, AStuckStreamHoldsBackNobodyElse) {
  Make({.flush_items = 2, .max_items = 4, .wait_timeout = milliseconds(1)});
  ASSERT_TRUE(fake_->Hold(a_));
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(Push(a_));
  HeldSource source = Counted();
  ExpectError(queue_->Push(std::move(source), a_), ErrorCode::kUnavailable);
  EXPECT_TRUE(source) << "a refused source is still the caller's";
  for (int i = 0; i < 100; ++i) {
    CopyAndPush(b_);
    ASSERT_TRUE(fake_->SynchronizeStream(b_));
  }
  EXPECT_GE(queue_->stats().released, 96U);
  EXPECT_EQ(released(), 0);
  ASSERT_TRUE(fake_->Release(a_));
  ASSERT_TRUE(queue_->Push(std::move(source), a_));
  ASSERT_TRUE(queue_->Drain());
  EXPECT_EQ(released(), 5);
}

TEST_F(ReleaseQueueTest, OneOversizeSourceIsTakenWhenItsStreamHoldsNothing) {
  Make({.flush_bytes = 100, .max_bytes = 100, .wait_timeout = nanoseconds(0)});
  ASSERT_TRUE(fake_->Hold(a_));
  ASSERT_TRUE(Push(a_, 5'000));
  ExpectError(Push(a_, 1), ErrorCode::kUnavailable);
  ASSERT_TRUE(Push(b_, 1));
  ASSERT_TRUE(fake_->Hold(b_));
  ExpectError(Push(b_, 5'000), ErrorCode::kUnavailable);
}

// one:   pushes small sources, one after the other ...........
// other:     one that is taken only when its stream holds nothing
TEST_F(ReleaseQueueTest, WhoWaitsAtALimitIsServedInTheOrderOfComing) {
  Make({.flush_items = 1, .flush_bytes = 100, .max_bytes = 100});
  std::vector<uint64_t> served;
  const auto push = [&](uint64_t bytes) {
    BusyFor(a_, milliseconds(1));
    EXPECT_TRUE(Push(a_, bytes));
    served.push_back(bytes);
  };
  push(60);
  const auto pushes_small = [&] {
    for (int i = 0; i < 20; ++i) push(60);
  };
  const auto ran =
      RunTasks(*fake_, {pushes_small, [&] { push(5'000); }, pushes_small, pushes_small});
  ASSERT_TRUE(ran) << ran.error().ToString();
  const auto large = std::find(served.begin(), served.end(), 5'000);
  EXPECT_LE(large - served.begin(), 8) << "at most a few came before it";
}

// A wait runs callbacks, and one of those must not wait for the wait that runs it.
TEST_F(ReleaseQueueTest, ACallbackThatPushesDoesNotStandInTheLineOfItsOwnThread) {
  Make({.flush_items = 1, .max_items = 2});
  bool pushed = false;
  ASSERT_TRUE(queue_->Push(HeldSource([&] { pushed = Push(a_).has_value(); }, 8), a_));
  BusyFor(a_, milliseconds(1));
  ASSERT_TRUE(Push(a_));
  ASSERT_TRUE(Push(a_)) << "waits for the first";
  EXPECT_TRUE(pushed);
  EXPECT_LT(fake_->Now(), milliseconds(100));
}

// Scenario 30: a counter of 32 bits was full at 4 GiB.
TEST_F(ReleaseQueueTest, BytesAreCountedIn64Bits) {
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  Make({.flush_bytes = kMost, .max_bytes = kMost, .wait_timeout = nanoseconds(0)});
  ASSERT_TRUE(fake_->Hold(a_));
  ASSERT_TRUE(Push(a_, uint64_t{5} << 30));
  ASSERT_TRUE(Push(a_, uint64_t{5} << 30));
  EXPECT_EQ(queue_->stats().held_bytes, uint64_t{10} << 30);
  ExpectError(Push(a_, kMost), ErrorCode::kUnavailable);  // the sum overflows
}

TEST_F(ReleaseQueueTest, NothingIsFlushedIntoACapture) {
  Make({.flush_items = 2, .max_items = 3});
  ASSERT_TRUE(fake_->BeginCapture(a_));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Push(a_));
  EXPECT_TRUE(queue_->ShouldFlush(a_).value_or(false));
  EXPECT_EQ(Flush(a_), FlushOutcome::kPutOff);
  EXPECT_EQ(Poll(), 0U);
  ExpectError(Push(a_), ErrorCode::kResourceExhausted);
  EXPECT_FALSE(queue_->ShouldFlush(b_).value_or(true));
  auto graph = fake_->EndCapture(a_);
  ASSERT_TRUE(graph) << graph.error().ToString();
  EXPECT_EQ(graph->operations(), 0U);
  EXPECT_EQ(queue_->stats().flushes, 0U);
  EXPECT_TRUE(queue_->ShouldFlush(a_).value_or(false));
  EXPECT_EQ(Flush(a_), FlushOutcome::kFlushed);
  fake_->RunUntilIdle();
  Poll();
  EXPECT_EQ(queue_->stats().released, 3U);
}

TEST_F(ReleaseQueueTest, TheNextPushMakesAFlushThatWasPutOff) {
  Make({.flush_items = 3});
  ASSERT_TRUE(Push(a_));
  ASSERT_TRUE(fake_->BeginCapture(a_));
  EXPECT_EQ(Flush(a_), FlushOutcome::kPutOff);
  ASSERT_TRUE(fake_->EndCapture(a_));
  ASSERT_TRUE(Push(a_));  // below the mark
  EXPECT_EQ(queue_->stats().flushes, 1U);
  EXPECT_FALSE(queue_->ShouldFlush(a_).value_or(true));
}

// Another thread's poll cannot know when the owner of a stream begins its next capture.
TEST_F(ReleaseQueueTest, APollUsesNoStreamAndSoHurtsNoCapture) {
  Make({.flush_items = 1});
  ASSERT_TRUE(fake_->BeginCapture(a_, CaptureMode::kRelaxed));
  ASSERT_TRUE(Push(a_));  // its flush is put off
  ASSERT_TRUE(fake_->EndCapture(a_));
  bool capturing = false;
  const auto begin = [&](uint64_t) {
    if (!std::exchange(capturing, true)) {
      ASSERT_TRUE(fake_->BeginCapture(a_, CaptureMode::kRelaxed));
    }
  };
  faulty_->SetHook(CallKind::kRecord, begin);
  const uint64_t inspections = faulty_->CallCount(CallKind::kInspect);
  EXPECT_EQ(Poll(), 0U);
  EXPECT_EQ(faulty_->CallCount(CallKind::kInspect), inspections);
  begin(0);
  EXPECT_EQ(Poll(), 0U);
  const auto graph = fake_->EndCapture(a_);
  ASSERT_TRUE(graph) << graph.error().ToString();
  EXPECT_EQ(graph->operations(), 0U);
  faulty_->SetHook(CallKind::kRecord, {});
  ASSERT_TRUE(queue_->Drain());
  EXPECT_EQ(released(), 1);
}

TEST_F(ReleaseQueueTest, ADrainUnderACaptureDrainsTheOthersAndSaysSo) {
  ASSERT_TRUE(Push(a_));
  ASSERT_TRUE(fake_->BeginCapture(a_, CaptureMode::kRelaxed));
  ASSERT_TRUE(Push(b_));
  ExpectError(queue_->Drain(), ErrorCode::kFailedPrecondition);
  EXPECT_EQ(released(), 1);
  ASSERT_TRUE(fake_->EndCapture(a_));
  ASSERT_TRUE(queue_->Drain());
  EXPECT_EQ(released(), 2);
}

TEST_F(ReleaseQueueTest, AFailedRecordKeepsTheSources) {
  Make({.flush_items = 2});
  for (const FaultTiming timing : {FaultTiming::kBeforeCall, FaultTiming::kAfterCall}) {
    const int before = released();
    faulty_->Inject({.kind = CallKind::kRecord,
                     .call = faulty_->CallCount(CallKind::kRecord) + 1,
                     .timing = timing});
    CopyAndPush(a_);
    ASSERT_TRUE(Push(a_)) << "the push itself is done";
    fake_->RunUntilIdle();
    EXPECT_TRUE(queue_->ShouldFlush(a_).value_or(false));
    EXPECT_EQ(released(), before);
    EXPECT_EQ(Flush(a_), FlushOutcome::kFlushed);
    fake_->RunUntilIdle();
    Poll();
    EXPECT_EQ(released(), before + 1);
  }
  EXPECT_EQ(queue_->stats().flushes_failed, 2U);
}

// While one thread records, others push to the mark, and their record fails.
TEST_F(ReleaseQueueTest, ADueFlushOutlivesTheSuccessOfAnother) {
  Make({.flush_items = 2});
  faulty_->Inject({.kind = CallKind::kRecord, .call = 2});
  faulty_->SetHook(CallKind::kRecord, [&](uint64_t call) {
    if (call != 1) return;
    ASSERT_TRUE(Push(a_));
    ASSERT_TRUE(Push(a_));
  });
  ASSERT_TRUE(Push(a_));
  EXPECT_EQ(Flush(a_), FlushOutcome::kFlushed);
  EXPECT_EQ(queue_->stats().flushes_failed, 1U);
  EXPECT_TRUE(queue_->ShouldFlush(a_).value_or(false));
  faulty_->SetHook(CallKind::kRecord, {});
  EXPECT_EQ(Flush(a_), FlushOutcome::kFlushed);
  EXPECT_FALSE(queue_->ShouldFlush(a_).value_or(true));
}

// a: [copy 1, event 1, busy, copy 2, event 2]    event 1 fails to answer once
TEST_F(ReleaseQueueTest, AnEventThatFailsToAnswerKeepsItsSourcesAndIsAskedAgain) {
  CopyAndPush(a_);
  ASSERT_TRUE(Push(a_));
  EXPECT_EQ(Flush(a_), FlushOutcome::kFlushed);
  fake_->RunUntilIdle();
  ASSERT_TRUE(fake_->Hold(a_));
  CopyAndPush(a_);
  ASSERT_TRUE(Push(a_));
  EXPECT_EQ(Flush(a_), FlushOutcome::kFlushed);
  faulty_->Inject({.kind = CallKind::kQuery, .call = faulty_->CallCount(CallKind::kQuery) + 1});
  EXPECT_FALSE(queue_->Poll());
  EXPECT_EQ(released(), 0);
  Poll();
  EXPECT_EQ(released(), 1);
}

TEST_F(ReleaseQueueTest, AYoungerEventStandsForABatchWhoseOwnFailsToAnswer) {
  for (int i = 0; i < 2; ++i) {
    CopyAndPush(a_);
    ASSERT_TRUE(Push(a_));
    EXPECT_EQ(Flush(a_), FlushOutcome::kFlushed);
  }
  fake_->RunUntilIdle();
  faulty_->Inject({.kind = CallKind::kQuery, .call = faulty_->CallCount(CallKind::kQuery) + 1});
  EXPECT_FALSE(queue_->Poll()) << "the failure is told all the same";
  EXPECT_EQ(released(), 2);
}

// An event may be of no use for ever: one that was recorded into a capture that ended badly.
TEST_F(ReleaseQueueTest, AFlushRecordsAnewWhatFailedToAnswer) {
  CopyAndPush(a_);
  ASSERT_TRUE(Push(a_));
  EXPECT_EQ(Flush(a_), FlushOutcome::kFlushed);
  EXPECT_EQ(Flush(a_), FlushOutcome::kNothing);
  ASSERT_TRUE(fake_->Hold(a_));
  faulty_->Inject({.kind = CallKind::kQuery, .call = faulty_->CallCount(CallKind::kQuery) + 1});
  EXPECT_FALSE(queue_->Poll());
  const FakeCounters before = fake_->counters();
  EXPECT_EQ(Flush(a_), FlushOutcome::kFlushed);
  EXPECT_EQ(fake_->counters().records, before.records + 1);
  EXPECT_EQ(Poll(), 0U) << "the new event is behind what holds the stream";
  ASSERT_TRUE(fake_->Release(a_));
  fake_->RunUntilIdle();
  EXPECT_EQ(Poll(), 2U);
  EXPECT_EQ(released(), 1);
}

TEST_F(ReleaseQueueTest, APollTellsOneFailureWhateverTheNumberOfBatches) {
  for (const Stream& stream : {a_, b_}) {
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(Push(stream));
      EXPECT_EQ(Flush(stream), FlushOutcome::kFlushed);
    }
  }
  fake_->RunUntilIdle();
  faulty_->Inject({.kind = CallKind::kQuery, .span = FaultSpan::kForEver});
  for (int i = 0; i < 2; ++i) {
    const auto polled = queue_->Poll();
    ASSERT_FALSE(polled);
    EXPECT_EQ(polled.error().code, ErrorCode::kDevice);
    EXPECT_EQ(queue_->stats().held_items, 6U);
  }
  faulty_->ClearFaults();
  EXPECT_EQ(Poll(), 6U);
}

TEST_F(ReleaseQueueTest, AnErrorOfTheDeviceIsNoCompletion) {
  ASSERT_TRUE(fake_->Hold(a_));
  CopyAndPush(a_);
  EXPECT_EQ(Flush(a_), FlushOutcome::kFlushed);
  faulty_->Inject({.kind = CallKind::kQuery, .span = FaultSpan::kForEver});
  EXPECT_FALSE(queue_->Poll());
  EXPECT_EQ(queue_->stats().released, 0U);
  faulty_->ClearFaults();
}

TEST_F(ReleaseQueueTest, ALostDeviceLeaksTheSourcesAndEndsQuietly) {
  ASSERT_TRUE(fake_->Hold(a_));
  CopyAndPush(a_);
  ASSERT_TRUE(Push(a_));
  fake_->Poison(Error{ErrorCode::kDevice, 700, "An illegal address was accessed."});
  queue_.reset();
  EXPECT_EQ(released(), 0);
}

TEST_F(ReleaseQueueTest, CallbacksRunOutsideTheLock) {
  Make({.flush_items = 1});
  int runs = 0;
  ASSERT_TRUE(queue_->Push(HeldSource(
                               [&] {
                                 ++runs;
                                 EXPECT_TRUE(Push(b_));
                                 EXPECT_TRUE(queue_->Poll());
                               },
                               8),
                           a_));
  fake_->RunUntilIdle();
  Poll();
  EXPECT_EQ(runs, 1);
}

// On a device whose events are complete at once, each push could release the one before.
TEST(ReleaseQueueOnHost, CallbacksThatPushDoNotNest) {
  const auto host = HostDevice::Create();
  auto queue = ReleaseQueue::Create(host, {.flush_items = 1}).value();
  const Stream stream = host->NewStream();
  int runs = 0;
  int depth = 0;
  int deepest = 0;
  std::function<void()> push = [&] {
    ++depth;
    deepest = std::max(deepest, depth);
    if (++runs < 100) {
      EXPECT_TRUE(queue->Push(HeldSource([&] { push(); }, 8), stream));
      if (runs % 2 == 0) {
        EXPECT_TRUE(queue->Poll());
      }
    }
    --depth;
  };
  ASSERT_TRUE(queue->Push(HeldSource([&] { push(); }, 8), stream));
  while (queue->stats().held_items > 0) ASSERT_TRUE(queue->Poll());
  EXPECT_EQ(runs, 100);
  EXPECT_EQ(deepest, 1);
}

TEST_F(ReleaseQueueTest, ADrainWithinACallbackDoesNotWaitForIt) {
  int drained = 0;
  ASSERT_TRUE(queue_->Push(
      HeldSource([&] { drained += queue_->Drain(milliseconds(1)).has_value() ? 1 : 0; }, 8), a_));
  ASSERT_TRUE(queue_->Drain());
  EXPECT_EQ(drained, 1);
}

// poll:  [callback ...........]
// drain:      [............... ok]
TEST(ReleaseQueueOnHost, ADrainWaitsForTheCallbacksOfOtherThreads) {
  const auto host = HostDevice::Create();
  const auto faulty = FaultyDevice::Create(host);
  const auto queue = ReleaseQueue::Create(faulty).value();
  std::atomic<bool> within{false};
  std::atomic<bool> waiting{false};  // the drain waits, or is over
  std::atomic<bool> done{false};
  faulty->SetHook(CallKind::kWaitAny, [&](uint64_t) { waiting = true; });
  const Stream stream = host->NewStream();
  auto callback = [&] {
    within = true;
    while (!waiting) std::this_thread::yield();
    done = true;
  };
  ASSERT_TRUE(queue->Push(HeldSource(std::move(callback), 8), stream));
  ASSERT_TRUE(queue->Flush(stream));
  std::thread other([&] { EXPECT_TRUE(queue->Poll()); });
  while (!within) std::this_thread::yield();
  EXPECT_TRUE(queue->Drain());
  EXPECT_TRUE(done);
  waiting = true;
  other.join();
}

// flush:  [record ....... fails]
// drain:       [........................ ok]    it records anew
TEST(ReleaseQueueOnHost, ADrainReleasesWhatAnotherThreadsFlushFailedToRecord) {
  const auto host = HostDevice::Create();
  const auto faulty = FaultyDevice::Create(host);
  const auto queue = ReleaseQueue::Create(faulty).value();
  const Stream stream = host->NewStream();
  std::atomic<bool> recording{false};
  std::atomic<bool> waiting{false};
  faulty->SetHook(CallKind::kWaitAny, [&](uint64_t) { waiting = true; });
  faulty->SetHook(CallKind::kRecord, [&](uint64_t call) {
    if (call != 1) return;
    recording = true;
    while (!waiting) std::this_thread::yield();
  });
  faulty->Inject({.kind = CallKind::kRecord, .call = 1});
  int released = 0;
  ASSERT_TRUE(queue->Push(HeldSource([&] { ++released; }, 8), stream));
  std::thread other([&] { EXPECT_FALSE(queue->Flush(stream)); });
  while (!recording) std::this_thread::yield();
  EXPECT_TRUE(queue->Drain());
  other.join();
  EXPECT_EQ(queue->stats().held_items, 0U);
  EXPECT_EQ(released, 1);
}

TEST_F(ReleaseQueueTest, ADrainDoesNotWaitForWhatIsPushedMeanwhile) {
  Make({.flush_items = 1});
  bool more = true;
  std::function<void()> push = [&] {
    BusyFor(a_, milliseconds(1));
    EXPECT_TRUE(queue_->Push(HeldSource(
                                 [&] {
                                   ++*released_;
                                   if (more) push();
                                 },
                                 8),
                             a_));
  };
  push();
  EXPECT_TRUE(queue_->Drain(milliseconds(100)));
  EXPECT_GE(released(), 1);
  EXPECT_LE(released(), 3);
  more = false;
  ASSERT_TRUE(queue_->Drain());  // the last callback looks at this test's variables
}

TEST_F(ReleaseQueueTest, TheEndReleasesWhatItsCallbacksPush) {
  ReleaseQueue& queue = *queue_;
  ASSERT_TRUE(queue.Push(HeldSource([&] { EXPECT_TRUE(queue.Push(Counted(), b_)); }, 8), a_));
  queue_.reset();
  EXPECT_EQ(released(), 1);
}

TEST_F(ReleaseQueueTest, APerThreadStreamIsFlushedByEachPush) {
  ASSERT_TRUE(Push(fake_->PerThreadStream()));
  EXPECT_EQ(queue_->stats().flushes, 1U);
}

TEST_F(ReleaseQueueTest, ReservedRoomCountsUntilItIsUsedOrGivenBack) {
  Make({.flush_items = 1, .max_items = 1, .wait_timeout = nanoseconds(0)});
  {
    auto room = queue_->Reserve(64, a_);
    ASSERT_TRUE(room);
    ExpectError(Push(a_), ErrorCode::kUnavailable);
  }
  auto room = queue_->Reserve(64, a_);
  ASSERT_TRUE(room);
  ASSERT_TRUE(queue_->Push(Counted(), a_, std::move(*room)));
  HeldSource source = Counted();
  ExpectError(queue_->Push(std::move(source), a_, std::move(*room)), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(source) << "a refused source is still the caller's";
  ASSERT_TRUE(queue_->Drain());
  EXPECT_EQ(queue_->stats().released, 1U);
  EXPECT_EQ(queue_->stats().held_items, 0U);
}

// b: [held ... copy]    an event on a would say nothing of it
TEST_F(ReleaseQueueTest, RoomOfAnotherStreamIsRefusedAndStaysGood) {
  Make({.flush_items = 1});
  ASSERT_TRUE(fake_->Hold(b_));
  auto room = queue_->Reserve(64, a_);
  ASSERT_TRUE(room);
  auto pinned = fake_->AllocatePinned(64);
  ASSERT_TRUE(pinned);
  ASSERT_TRUE(fake_->CopyAsync(target_, pinned->bytes(), b_));
  HeldSource source(std::move(*pinned));
  ExpectError(queue_->Push(std::move(source), b_, std::move(*room)), ErrorCode::kInvalidArgument);
  ASSERT_TRUE(source) << "a refused source is still the caller's";
  fake_->RunUntilIdle();
  EXPECT_EQ(Poll(), 0U);
  EXPECT_TRUE(queue_->Push(Counted(), a_, std::move(*room)));
  EXPECT_TRUE(queue_->Push(std::move(source), b_));
  ASSERT_TRUE(fake_->Release(b_));
}

TEST_F(ReleaseQueueTest, RoomOfAPerThreadStreamIsThatThreadsOwn) {
  const Stream stream = fake_->PerThreadStream();
  auto room = queue_->Reserve(64, stream);
  ASSERT_TRUE(room);
  HeldSource source = Counted();
  std::thread([&] {
    ExpectError(queue_->Push(std::move(source), stream, std::move(*room)),
                ErrorCode::kInvalidArgument);
  }).join();
  EXPECT_TRUE(queue_->Push(std::move(source), stream, std::move(*room)));
}

TEST_F(ReleaseQueueTest, ADrainEndsAtItsTimeout) {
  ASSERT_TRUE(fake_->Hold(a_));
  ASSERT_TRUE(Push(a_));
  ExpectError(queue_->Drain(milliseconds(1)), ErrorCode::kUnavailable);
  EXPECT_EQ(released(), 0);
}

TEST_F(ReleaseQueueTest, TheEndWaitsForItsOwnSourcesOnly) {
  ASSERT_TRUE(fake_->Hold(b_));
  BusyFor(a_, milliseconds(5));
  CopyAndPush(a_);
  ASSERT_TRUE(Push(a_));
  queue_.reset();
  EXPECT_EQ(released(), 1);
  EXPECT_GE(fake_->Now(), milliseconds(5));
}

TEST_F(ReleaseQueueTest, BadCallsAreRefused) {
  ExpectError(queue_->Push(HeldSource(std::vector<int>()), FakeDevice::Create()->NewStream()),
              ErrorCode::kInvalidArgument);
  HeldSource moved = Counted();
  const HeldSource taken = std::move(moved);
  ExpectError(queue_->Push(std::move(moved), a_), ErrorCode::kInvalidArgument);
  EXPECT_FALSE(ReleaseQueue::Create(nullptr));
  const auto bad = [](const ReleaseQueueOptions& options, const std::string& name) {
    const auto queue = ReleaseQueue::Create(FakeDevice::Create(), options);
    ASSERT_FALSE(queue);
    EXPECT_NE(queue.error().message.find(name), std::string::npos) << queue.error().message;
  };
  bad({.flush_items = 0}, "flush_items, 0");
  bad({.flush_bytes = 0}, "flush_bytes, 0");
  bad({.flush_items = 10, .max_items = 9}, "flush_items, 10");
  bad({.flush_bytes = 10, .max_bytes = 9}, "flush_bytes, 10");
  bad({.wait_timeout = nanoseconds(-1)}, "wait_timeout, -1");
}

}  // namespace
}  // namespace h2d
