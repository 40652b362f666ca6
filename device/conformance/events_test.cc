// Events: what a record stands for, and how it is waited for.
#include <array>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "h2d/device/conformance/conformance_test.h"

namespace h2d::conformance {
namespace {

using Events = ConformanceTest;
using HeldEvents = ConformanceTest;
using std::chrono::milliseconds;

constexpr WaitBounds kOneLook = {};

TEST_F(Events, AnEventThatWasNeverRecordedIsComplete) { EXPECT_FALSE(IsPending(NewEvent())); }

TEST_F(HeldEvents, AnEventIsPendingUntilItsStreamGotThere) {
  const Stream held = NewHeldStream();
  const Event event = RecordOn(held);
  RunAround();
  EXPECT_TRUE(IsPending(event));
  Must(harness().Release(held));
  Await(event);
}

TEST_F(HeldEvents, LaterWorkDoesNotMoveARecord) {
  const Stream stream = NewStream();
  const Event event = RecordOn(stream);
  Await(event);
  Must(harness().Hold(stream));
  Must(device().CopyAsync(NewMemory(64), NewPinned(Pattern(64, 1)).bytes(), stream));
  Await(event);  // a single look may be told "pending" late
  Must(harness().Release(stream));
}

// held:  [hold ............. record(e)]
// other:                                 record(e)     e answers for this one only
TEST_F(HeldEvents, ARecordReplacesAnEarlierOneForQueries) {
  const Stream held = NewHeldStream();
  const Stream other = NewStream();
  Event event = RecordOn(held);
  const Event behind = RecordOn(held);
  Must(device().Record(event, other));
  Await(event);
  EXPECT_TRUE(IsPending(behind));
  Must(harness().Release(held));
  Await(behind);
}

// held:   [hold ... record(e)]
// waiter:                      wait(e)            copy, record(f)
// other:                                record(e)                  f still waits for the first
TEST_F(HeldEvents, AWaitingStreamKeepsTheRecordThatItWaitsFor) {
  const Stream held = NewHeldStream();
  const Stream waiter = NewStream();
  const Stream other = NewStream();
  Event event = RecordOn(held);
  Must(device().WaitEvent(waiter, event));
  Must(device().Record(event, other));
  const Event behind = RecordOn(waiter);
  Await(event);
  RunAround();
  EXPECT_TRUE(IsPending(behind));
  Must(harness().Release(held));
  Await(behind);
}

TEST_F(HeldEvents, AStreamWaitOrdersTheWorkBehindIt) {
  const Stream held = NewHeldStream();
  const Stream waiter = NewStream();
  const DevicePtr ptr = NewMemory(40'000);
  Must(device().CopyAsync(ptr, NewPinned(Pattern(40'000, 1)).bytes(), held));
  Must(device().WaitEvent(waiter, RecordOn(held)));
  Must(device().CopyAsync(ptr, NewPinned(Pattern(40'000, 2)).bytes(), waiter));
  Must(harness().Release(held));
  EXPECT_TRUE(ReadBack(ptr, 40'000, waiter) == Pattern(40'000, 2));
}

TEST_F(HeldEvents, AWaitBeforeTheFirstRecordIsNoWait) {
  const Stream held = NewHeldStream();
  const Stream waiter = NewStream();
  Event event = NewEvent();
  Must(device().WaitEvent(waiter, event));
  Must(device().Record(event, held));
  Await(RecordOn(waiter));
  EXPECT_TRUE(IsPending(event));
  Must(harness().Release(held));
  Await(event);
}

TEST_F(HeldEvents, DestroyingAPendingEventLeavesItsWaitersHeld) {
  const Stream held = NewHeldStream();
  const Stream waiter = NewStream();
  std::optional<Event> event = RecordOn(held);
  Must(device().WaitEvent(waiter, *event));
  event.reset();
  const Event behind = RecordOn(waiter);
  RunAround();
  EXPECT_TRUE(IsPending(behind));
  Must(harness().Release(held));
  Await(behind);
}

TEST_F(HeldEvents, AWaitForAnyAnswersWhicheverCompletesFirst) {
  const Stream held = NewHeldStream();
  const Event slow = RecordOn(held);
  const Event fast = RecordOn(NewStream());
  const std::array<const Event*, 2> events = {&slow, &fast};
  EXPECT_EQ(Must(device().WaitAny(events, {.timeout = milliseconds(10'000)})), 1U);
  Must(harness().Release(held));
  Await(slow);
}

// A completion may be seen late, so a look may miss one; it never names one that is not complete.
TEST_F(HeldEvents, OneLookAnswersTheFirstThatIsComplete) {
  const Stream held = NewHeldStream();
  const Event slow = RecordOn(held);
  const Stream stream = NewStream();
  const Event first = RecordOn(stream);
  const Event second = RecordOn(stream);
  Await(second);
  Await(first);
  const std::array<const Event*, 3> events = {&slow, &first, &second};
  std::optional<size_t> seen;
  for (int look = 0; look < 1000 && seen != 1U; ++look) {
    seen = Must(device().WaitAny(events, kOneLook));
    EXPECT_NE(seen, 0U);
  }
  EXPECT_EQ(seen, 1U);
  EXPECT_EQ(Must(device().WaitAny(std::span(events).first(1), kOneLook)), std::nullopt);
  Must(harness().Release(held));
  Await(slow);
}

TEST_F(HeldEvents, AWaitEndsAtItsTimeout) {
  const Stream held = NewHeldStream();
  const Event event = RecordOn(held);
  const Event* const only = &event;
  const std::chrono::nanoseconds before = device().Now();
  EXPECT_EQ(Must(device().WaitAny(std::span(&only, 1), {.timeout = milliseconds(2)})),
            std::nullopt);
  EXPECT_GE(device().Now() - before, milliseconds(2));
  EXPECT_EQ(Must(device().WaitAny({}, {.timeout = milliseconds(2)})), std::nullopt);
  Must(harness().Release(held));
  Await(event);
}

TEST_F(HeldEvents, ANotificationSinceItsEpochWasReadEndsAWait) {
  const Stream held = NewHeldStream();
  const Event event = RecordOn(held);
  const Event* const only = &event;
  Wakeup wakeup;
  const WaitBounds bounds = {
      .timeout = std::chrono::hours(1), .wakeup = &wakeup, .seen = wakeup.Epoch()};
  wakeup.Notify();
  EXPECT_EQ(Must(device().WaitAny(std::span(&only, 1), bounds)), std::nullopt);
  Must(harness().Release(held));
  Await(event);
}

TEST_F(HeldEvents, AnotherThreadsNotificationEndsAWait) {
  const Stream held = NewHeldStream();
  const Event event = RecordOn(held);
  const Event* const only = &event;
  Wakeup wakeup;
  const WaitBounds bounds = {
      .timeout = std::chrono::hours(1), .wakeup = &wakeup, .seen = wakeup.Epoch()};
  std::thread notifier([&] { wakeup.Notify(); });
  EXPECT_EQ(Must(device().WaitAny(std::span(&only, 1), bounds)), std::nullopt);
  notifier.join();
  Must(harness().Release(held));
  Await(event);
}

TEST_F(HeldEvents, ManyThreadsMayWaitForOneEvent) {
  const Stream held = NewHeldStream();
  const Event event = RecordOn(held);
  const Event* const only = &event;
  std::atomic<int> complete = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const Expected<std::optional<size_t>> found =
          device().WaitAny(std::span(&only, 1), {.timeout = milliseconds(20'000)});
      if (found && *found == 0U) ++complete;
    });
  }
  Must(harness().Release(held));
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(complete, 4);
}

TEST_F(Events, AnotherThreadReadsWhatACompletionAcquired) {
  const Stream stream = NewStream();
  const DevicePtr ptr = NewMemory(40'000);
  Event event = NewEvent();
  Expected<void> enqueued = FailedPrecondition("not enqueued");
  std::thread([&] {
    enqueued = device().CopyAsync(ptr, NewPinned(Pattern(40'000, 4)).bytes(), stream);
    if (enqueued) enqueued = device().Record(event, stream);
  }).join();
  Must(enqueued);
  Await(event);
  EXPECT_TRUE(ReadBack(ptr, 40'000, NewStream()) == Pattern(40'000, 4));
}

TEST_F(Events, AMovedFromEventIsRefusedEverywhere) {
  const Stream stream = NewStream();
  Event event = NewEvent();
  const Event taken = std::move(event);
  const Event* const only = &event;
  EXPECT_EQ(CodeOf(device().Record(event, stream)), ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(device().Query(event)), ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(device().WaitEvent(stream, event)), ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(device().WaitAny(std::span(&only, 1), kOneLook)), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace h2d::conformance
