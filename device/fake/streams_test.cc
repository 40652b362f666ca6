// Streams and events of the simulated device: order, holds, identities, waits.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "h2d/device/fake/fake_device.h"
#include "h2d/device/fake/testing/fake_fixture.h"

namespace h2d {
namespace {

using std::chrono::microseconds;
using testing::BytesOf;

class StreamsTest : public testing::FakeFixture {};

TEST_F(StreamsTest, AStreamRunsInOrderAndAHeldOneNotAtAll) {
  const PinnedBuffer other = *device_->AllocatePinned(kBytes);
  Fill(slot_, 1);
  Fill(other, 2);
  ASSERT_TRUE(device_->Hold(a_));
  ASSERT_TRUE(Copy(a_, target_, slot_));
  ASSERT_TRUE(Copy(a_, target_, other));
  ASSERT_TRUE(Copy(b_, target_ + kBytes, slot_));
  EXPECT_EQ(device_->RunUntilIdle(), 2U);
  EXPECT_EQ(At(target_), BytesOf(0, kBytes));
  EXPECT_EQ(At(target_ + kBytes), BytesOf(1, kBytes));
  ASSERT_TRUE(device_->Release(a_));
  EXPECT_EQ(device_->RunUntilIdle(), 0U);
  EXPECT_EQ(At(target_), BytesOf(2, kBytes));
  ExpectNoHazard();
}

TEST_F(StreamsTest, CompleteNextReachesIntoAHeldStreamOneOperationAtATime) {
  Fill(slot_, 1);
  ASSERT_TRUE(device_->Hold(a_));
  ASSERT_TRUE(Copy(a_, target_, slot_));
  const Event event = RecordOn(a_);
  ASSERT_TRUE(Copy(a_, target_ + kBytes, slot_));
  EXPECT_TRUE(*device_->CompleteNext(a_));
  EXPECT_EQ(At(target_), BytesOf(1, kBytes));
  EXPECT_EQ(At(target_ + kBytes), BytesOf(0, kBytes));
  EXPECT_EQ(StateOf(event), EventState::kComplete);  // a record completes with what it follows
  EXPECT_TRUE(*device_->CompleteNext(a_));
  EXPECT_FALSE(*device_->CompleteNext(a_));
}

TEST_F(StreamsTest, CompleteNextCannotCompleteAWaitForWorkThatIsPending) {
  ASSERT_TRUE(device_->Hold(a_));
  ASSERT_TRUE(Copy(a_, target_, slot_));
  const Event event = RecordOn(a_);
  ASSERT_TRUE(device_->WaitEvent(b_, event));
  EXPECT_FALSE(*device_->CompleteNext(b_));
  EXPECT_TRUE(*device_->CompleteNext(a_));
  EXPECT_EQ(*device_->QueryStream(b_), EventState::kComplete);
}

TEST_F(StreamsTest, AHoldInTheMiddleOfACopyKeepsItFromCompleting) {
  Fill(slot_, 1);
  ASSERT_TRUE(Copy(a_, target_, slot_));
  device_->AdvanceTime(microseconds(2));
  ASSERT_TRUE(device_->Hold(a_));
  device_->AdvanceTime(microseconds(100));
  EXPECT_EQ(At(target_), BytesOf(0, kBytes));
  ASSERT_TRUE(device_->Release(a_));
  ASSERT_TRUE(device_->SynchronizeStream(a_));
  EXPECT_EQ(At(target_), BytesOf(1, kBytes));
}

TEST_F(StreamsTest, ReleasedEarlyAHeldCopyStillTakesItsTime) {
  Fill(slot_, 1);
  ASSERT_TRUE(Copy(a_, target_, slot_));
  ASSERT_TRUE(device_->Hold(a_));
  EXPECT_EQ(device_->RunUntilIdle(), 1U);
  ASSERT_TRUE(device_->Release(a_));
  EXPECT_EQ(At(target_), BytesOf(0, kBytes));
  device_->AdvanceTime(microseconds(7));
  EXPECT_EQ(At(target_), BytesOf(1, kBytes));
}

TEST_F(StreamsTest, StreamsOvertakeOneAnotherByChoice) {
  ResetWith({{{1, ChoiceSite::kLatency, 0}, 3}});
  device_->BeginOperation(1);
  ASSERT_TRUE(Copy(a_, target_, slot_));
  const Event first = RecordOn(a_);
  device_->BeginOperation(2);
  ASSERT_TRUE(Copy(b_, target_ + kBytes, slot_));
  const Event second = RecordOn(b_);
  ASSERT_TRUE(device_->Synchronize(second));
  EXPECT_EQ(StateOf(first), EventState::kPending);
}

TEST_F(StreamsTest, ARecordStandsForTheWorkBeforeItAndNotForLaterWork) {
  ASSERT_TRUE(Copy(a_, target_, slot_));
  const Event event = RecordOn(a_);
  ASSERT_TRUE(device_->Launch(a_, {.name = "long", .duration = std::chrono::seconds(1)}));
  ASSERT_TRUE(device_->Synchronize(event));
  EXPECT_LT(device_->Now(), std::chrono::milliseconds(1));
  EXPECT_EQ(*device_->QueryStream(a_), EventState::kPending);
}

TEST_F(StreamsTest, ARecordOnAnIdleStreamLosesAnOlderPendingCompletion) {
  ASSERT_TRUE(device_->Hold(a_));
  ASSERT_TRUE(Copy(a_, target_, slot_));
  Event event = RecordOn(a_);
  EXPECT_EQ(StateOf(event), EventState::kPending);
  ASSERT_TRUE(device_->Record(event, b_));
  EXPECT_EQ(StateOf(event), EventState::kComplete);
  EXPECT_EQ(*device_->QueryStream(a_), EventState::kPending);
}

TEST_F(StreamsTest, AReRecordReleasesNoWaiter) {
  ASSERT_TRUE(device_->Hold(a_));
  ASSERT_TRUE(Copy(a_, target_, slot_));
  Event event = RecordOn(a_);
  ASSERT_TRUE(device_->WaitEvent(b_, event));
  const Stream idle = device_->NewStream();
  ASSERT_TRUE(device_->Record(event, idle));
  EXPECT_EQ(*device_->QueryStream(b_), EventState::kPending);
  ASSERT_TRUE(device_->Release(a_));
  ASSERT_TRUE(device_->SynchronizeStream(b_));
}

TEST_F(StreamsTest, AnEventNeverRecordedIsCompleteAndNoWait) {
  const Event event = *device_->CreateEvent();
  EXPECT_EQ(StateOf(event), EventState::kComplete);
  EXPECT_TRUE(device_->Synchronize(event));
  ASSERT_TRUE(device_->WaitEvent(b_, event));
  EXPECT_EQ(*device_->QueryStream(b_), EventState::kComplete);
}

TEST_F(StreamsTest, DestroyingAPendingEventKeepsItsWaitersHeld) {
  ASSERT_TRUE(device_->Hold(a_));
  ASSERT_TRUE(Copy(a_, target_, slot_));
  {
    const Event event = RecordOn(a_);
    ASSERT_TRUE(device_->WaitEvent(b_, event));
  }
  device_->RunUntilIdle();
  EXPECT_EQ(*device_->QueryStream(b_), EventState::kPending);
  ASSERT_TRUE(device_->Release(a_));
  EXPECT_EQ(device_->RunUntilIdle(), 0U);
}

TEST_F(StreamsTest, ADestroyedBusyStreamFinishesItsWorkAndItsHandleIsReused) {
  Fill(slot_, 4);
  const Stream old = device_->NewStream("old");
  ASSERT_TRUE(Copy(old, target_, slot_));
  ASSERT_TRUE(device_->DestroyStream(old));
  const Stream fresh = device_->NewStream("fresh");
  EXPECT_EQ(fresh.handle(), old.handle());
  EXPECT_NE(fresh.id(), old.id());
  EXPECT_EQ(device_->Wrap(old.handle())->id(), fresh.id());
  device_->RunUntilIdle();
  EXPECT_EQ(At(target_), BytesOf(4, kBytes));
  EXPECT_EQ(Copy(old, target_, slot_).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(TheHazard(HazardKind::kUseOfDestroyedHandle).missing, "old was destroyed");
}

TEST_F(StreamsTest, AHeldStreamIsReleasedAfterItWasDestroyed) {
  Fill(slot_, 4);
  ASSERT_TRUE(device_->Hold(a_));
  ASSERT_TRUE(Copy(a_, target_, slot_));
  ASSERT_TRUE(device_->DestroyStream(a_));
  EXPECT_EQ(device_->RunUntilIdle(), 1U);
  ASSERT_TRUE(device_->Release(a_));
  EXPECT_EQ(device_->RunUntilIdle(), 0U);
  EXPECT_EQ(At(target_), BytesOf(4, kBytes));
  ExpectNoHazard();
}

TEST_F(StreamsTest, ThePerThreadStreamIsAnotherInEachThreadAndTheLegacyStreamIsOne) {
  const Stream handle = device_->PerThreadStream();
  const StreamId here = device_->Inspect(handle)->id;
  StreamId there = 0;
  StreamId legacy = 0;
  std::thread([&] {
    there = device_->Inspect(handle)->id;
    legacy = device_->Inspect(device_->LegacyStream())->id;
  }).join();
  EXPECT_NE(here, there);
  EXPECT_NE(here, 0U);
  EXPECT_EQ(device_->Inspect(handle)->id, here);
  EXPECT_EQ(device_->Inspect(device_->LegacyStream())->id, legacy);
  EXPECT_EQ(device_->Inspect(a_)->id, a_.id());
}

TEST_F(StreamsTest, TheLegacyStreamWaitsForBlockingStreamsAndTheyForIt) {
  const Stream blocking = device_->NewStream("blocking", StreamFlags::kBlocking);
  ASSERT_TRUE(device_->Hold(blocking));
  ASSERT_TRUE(Copy(blocking, target_, slot_));
  ASSERT_TRUE(Copy(device_->LegacyStream(), target_, slot_));
  ASSERT_TRUE(Copy(device_->NewStream("other", StreamFlags::kBlocking), target_, slot_));
  ASSERT_TRUE(Copy(b_, target_ + kBytes, slot_));  // a non-blocking stream does not wait
  EXPECT_GE(device_->RunUntilIdle(), 3U);
  EXPECT_EQ(*device_->QueryStream(device_->LegacyStream()), EventState::kPending);
  EXPECT_EQ(*device_->QueryStream(b_), EventState::kComplete);
  ASSERT_TRUE(device_->Release(blocking));
  EXPECT_EQ(device_->RunUntilIdle(), 0U);
  ExpectNoHazard();  // the implicit order covers the three copies to one place
}

TEST_F(StreamsTest, ACompletionMayBeSeenLateAndAPendingAnswerOrdersNothing) {
  ResetWith({{{9, ChoiceSite::kSeenLate, 0}, 1}});
  ASSERT_TRUE(Copy(a_, target_, slot_));
  const Event event = RecordOn(a_);
  device_->RunUntilIdle();
  device_->BeginOperation(9);
  EXPECT_EQ(StateOf(event), EventState::kPending);
  EXPECT_EQ(StateOf(event), EventState::kComplete);
}

TEST_F(StreamsTest, WaitAnyAnswersTheFirstThatCompletes) {
  ASSERT_TRUE(device_->Launch(a_, {.duration = microseconds(500)}));
  const Event late = RecordOn(a_);
  ASSERT_TRUE(Copy(b_, target_, slot_));
  const Event early = RecordOn(b_);
  const std::array<const Event*, 2> events = {&late, &early};
  EXPECT_EQ(**device_->WaitAny(events, {std::chrono::seconds(1)}), 1U);
  EXPECT_LT(device_->Now(), microseconds(100));
}

TEST_F(StreamsTest, WaitAnyWithoutTimeLooksOnceInTheOrderGiven) {
  const Event first = RecordOn(a_);
  const Event second = RecordOn(b_);
  const std::array<const Event*, 2> events = {&first, &second};
  EXPECT_EQ(**device_->WaitAny(events, {}), 0U);
  ASSERT_TRUE(device_->Hold(a_));
  ASSERT_TRUE(Copy(a_, target_, slot_));
  const Event pending = RecordOn(a_);
  const std::array<const Event*, 1> one = {&pending};
  EXPECT_EQ(*device_->WaitAny(one, {}), std::nullopt);
}

TEST_F(StreamsTest, WaitAnyAnswersAnyOfSeveralCompleteEventsByChoice) {
  ResetWith({{{9, ChoiceSite::kSeenLate, 0}, 1},
             {{9, ChoiceSite::kSeenLate, 1}, 1},
             {{9, ChoiceSite::kWaitAnswer, 0}, 1}});
  const Event first = RecordOn(a_);
  const Event second = RecordOn(b_);
  const std::array<const Event*, 2> events = {&first, &second};
  device_->BeginOperation(9);
  EXPECT_EQ(**device_->WaitAny(events, {std::chrono::seconds(1)}), 1U);
}

TEST_F(StreamsTest, AWaitEndsAtItsDeadlineInVirtualTimeOrWhenItsWakeupMoved) {
  ASSERT_TRUE(device_->Hold(a_));
  ASSERT_TRUE(Copy(a_, target_, slot_));
  const Event event = RecordOn(a_);
  const std::array<const Event*, 1> events = {&event};
  const VirtualTime before = device_->Now();
  EXPECT_EQ(*device_->WaitAny(events, {std::chrono::seconds(3)}), std::nullopt);
  EXPECT_GE(device_->Now() - before, std::chrono::seconds(3));
  Wakeup wakeup;
  const uint64_t seen = wakeup.Epoch();
  wakeup.Notify();
  const VirtualTime then = device_->Now();
  EXPECT_EQ(*device_->WaitAny(events, {std::chrono::seconds(3), &wakeup, seen}), std::nullopt);
  EXPECT_LT(device_->Now() - then, microseconds(10));
}

TEST_F(StreamsTest, AWaitThatNothingCanEndIsADeadlockThatNamesWhoWaitsForWhom) {
  ASSERT_TRUE(device_->Hold(a_));
  ASSERT_TRUE(Copy(a_, target_, slot_));
  const Event event = RecordOn(a_);
  ASSERT_TRUE(device_->WaitEvent(b_, event));
  const Expected<void> synchronized = device_->SynchronizeStream(b_);
  ASSERT_FALSE(synchronized);
  EXPECT_EQ(synchronized.error().code, ErrorCode::kFailedPrecondition);
  const std::string who = TheHazard(HazardKind::kDeadlock).missing;
  EXPECT_NE(who.find("a holds 1 operation and is held by the test"), std::string::npos) << who;
  EXPECT_NE(who.find("b holds 1 operation and waits for a record on a"), std::string::npos) << who;
  EXPECT_NE(synchronized.error().message.find(who), std::string::npos);
}

TEST_F(StreamsTest, ALoopOfQueriesThatNothingCanEndBecomesAnError) {
  ASSERT_TRUE(device_->Hold(a_));
  ASSERT_TRUE(Copy(a_, target_, slot_));
  const Event event = RecordOn(a_);
  uint64_t queries = 0;
  Expected<EventState> state = EventState::kPending;
  while (state && queries < 1'000'000) {
    state = device_->Query(event);
    ++queries;
  }
  EXPECT_LT(queries, 1'000'000U);
  TheHazard(HazardKind::kDeadlock);
}

TEST_F(StreamsTest, QueriesAloneLetTimePass) {
  ASSERT_TRUE(Copy(a_, target_, slot_));
  const Event event = RecordOn(a_);
  int queries = 0;
  while (StateOf(event) == EventState::kPending) ++queries;
  EXPECT_GT(queries, 10);
  EXPECT_LT(queries, 100);
}

TEST_F(StreamsTest, HandlesOfAnotherDeviceAreRefused) {
  const std::shared_ptr<FakeDevice> other = FakeDevice::Create();
  Event foreign = *other->CreateEvent();
  EXPECT_EQ(device_->Record(foreign, a_).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(Copy(other->NewStream(), target_, slot_).error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(device_->MemorySpace(), other->MemorySpace());
}

}  // namespace
}  // namespace h2d
