// Every kind of hazard: where it is reported, what it names, and the edge that makes it legal.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "h2d/device/fake/fake_device.h"
#include "h2d/device/fake/hazard.h"
#include "h2d/device/fake/testing/fake_fixture.h"

namespace h2d {
namespace {

class HazardsTest : public testing::FakeFixture {
 protected:
  KernelSpec Reads(DevicePtr ptr, uint64_t bytes = kBytes) {
    return {.name = "reader", .reads = {{ptr, bytes}}};
  }
  KernelSpec Writes(DevicePtr ptr, uint64_t bytes = kBytes) {
    return {.name = "writer", .writes = {{ptr, bytes}}};
  }
};

// --- The source of a copy in flight ---

TEST_F(HazardsTest, AWriteAfterTheCompletionWasObservedIsNone) {
  Fill(slot_, 1);
  ASSERT_TRUE(Copy(a_, target_, slot_));
  const Event event = RecordOn(a_);
  ASSERT_TRUE(device_->Synchronize(event));
  Fill(slot_, 2);
  ExpectNoHazard();
}

TEST_F(HazardsTest, EveryWayToLearnOfACompletionObservesIt) {
  const std::vector<std::function<void(const Event&)>> ways = {
      [&](const Event& event) { ASSERT_TRUE(device_->Synchronize(event)); },
      [&](const Event&) { ASSERT_TRUE(device_->SynchronizeStream(a_)); },
      [&](const Event&) { ASSERT_TRUE(device_->SynchronizeDevice()); },
      [&](const Event& event) {
        device_->RunUntilIdle();
        ASSERT_EQ(StateOf(event), EventState::kComplete);
      },
      [&](const Event&) {
        device_->RunUntilIdle();
        ASSERT_EQ(*device_->QueryStream(a_), EventState::kComplete);
      },
      [&](const Event& event) {  // one look
        device_->RunUntilIdle();
        const Event* const events[] = {&event};
        ASSERT_TRUE((*device_->WaitAny(events, {})).has_value());
      },
      [&](const Event& event) {  // a wait
        const Event* const events[] = {&event};
        ASSERT_TRUE((*device_->WaitAny(events, {std::chrono::seconds(1)})).has_value());
      },
      [&](const Event&) { ASSERT_TRUE(device_->Trim()); },
  };
  for (size_t way = 0; way < ways.size(); ++way) {
    SCOPED_TRACE(way);
    Reset({});
    ASSERT_TRUE(Copy(a_, target_, slot_));
    ways[way](RecordOn(a_));
    Fill(slot_, 2);
    ExpectNoHazard();
  }
}

TEST_F(HazardsTest, AWriteBeforeTheCompletionWasObservedIsOneEvenIfTheCopyIsLongComplete) {
  Fill(slot_, 1);
  ASSERT_TRUE(Copy(a_, target_, slot_));
  const Event event = RecordOn(a_);
  device_->RunUntilIdle();
  Fill(slot_, 2);
  const Hazard hazard = TheHazard(HazardKind::kWriteToSourceInFlight);
  EXPECT_EQ(hazard.first.lane, "a");
  EXPECT_NE(hazard.first.operation.find("copy #"), std::string::npos);
  EXPECT_FALSE(hazard.first.writes);
  EXPECT_EQ(hazard.second.lane, "host");
  EXPECT_NE(hazard.second.operation.find("host write #"), std::string::npos);
  EXPECT_TRUE(hazard.second.writes);
  EXPECT_EQ(hazard.first.bytes, kBytes);
  EXPECT_NE(hazard.missing.find("host has not observed"), std::string::npos) << hazard.missing;
}

TEST_F(HazardsTest, APendingAnswerObservesNothing) {
  ASSERT_TRUE(device_->Hold(a_));
  ASSERT_TRUE(Copy(a_, target_, slot_));
  const Event event = RecordOn(a_);
  EXPECT_EQ(StateOf(event), EventState::kPending);
  Fill(slot_, 2);
  TheHazard(HazardKind::kWriteToSourceInFlight);
}

TEST_F(HazardsTest, ARecordBeforeTheCopyGuardsNothing) {
  const Event event = RecordOn(a_);
  ASSERT_TRUE(Copy(a_, target_, slot_));
  device_->RunUntilIdle();
  EXPECT_EQ(StateOf(event), EventState::kComplete);
  Fill(slot_, 2);
  TheHazard(HazardKind::kWriteToSourceInFlight);
}

TEST_F(HazardsTest, AnEventRecordedOnAnotherStreamGuardsNothingUnlessThatStreamWaited) {
  for (const bool waited : {false, true}) {
    Reset({});
    ASSERT_TRUE(Copy(a_, target_, slot_));
    const Event copied = RecordOn(a_);
    if (waited) {
      ASSERT_TRUE(device_->WaitEvent(b_, copied));
    }
    const Event event = RecordOn(b_);
    ASSERT_TRUE(device_->Synchronize(event));
    device_->RunUntilIdle();
    Fill(slot_, 2);
    if (waited) {
      ExpectNoHazard();
    } else {
      TheHazard(HazardKind::kWriteToSourceInFlight);
    }
  }
}

TEST_F(HazardsTest, OneEventRecordedOnTwoStreamsGuardsTheLastOnly) {
  ASSERT_TRUE(Copy(a_, target_, slot_));
  Event event = RecordOn(a_);
  ASSERT_TRUE(Copy(b_, target_ + kBytes, slot_));
  ASSERT_TRUE(device_->Record(event, b_));
  ASSERT_TRUE(device_->Synchronize(event));
  Fill(slot_, 2);
  EXPECT_EQ(TheHazard(HazardKind::kWriteToSourceInFlight).first.lane, "a");
}

TEST_F(HazardsTest, AStreamWaitDoesNotDelayTheHost) {
  ASSERT_TRUE(Copy(a_, target_, slot_));
  const Event event = RecordOn(a_);
  ASSERT_TRUE(device_->WaitEvent(b_, event));
  Fill(slot_, 2);  // for a copy on b
  TheHazard(HazardKind::kWriteToSourceInFlight);
}

TEST_F(HazardsTest, AReadBackIntoTheSourceOfACopyIsAWrite) {
  ASSERT_TRUE(device_->Hold(a_));
  ASSERT_TRUE(Copy(a_, target_, slot_));
  ASSERT_TRUE(device_->ReadBack(target_ + kBytes, slot_.bytes(), b_));
  const Hazard hazard = TheHazard(HazardKind::kWriteToSourceInFlight);
  EXPECT_EQ(hazard.second.lane, "host");
  EXPECT_NE(hazard.second.operation.find("read back"), std::string::npos);
  ASSERT_TRUE(device_->Release(a_));
  ASSERT_TRUE(device_->SynchronizeStream(a_));
  // On the stream of the copy it comes after it.
  ASSERT_TRUE(Copy(a_, target_, slot_));
  ASSERT_TRUE(device_->ReadBack(target_ + kBytes, slot_.bytes(), a_));
  ExpectNoHazard();
}

TEST_F(HazardsTest, OnlyTheBytesThatACopyReadsAreInFlight) {
  ASSERT_TRUE(device_->CopyAsync(target_, slot_.bytes().first(16), a_));
  device_->OnHostAccess(slot_.bytes().subspan(16), HostAccess::kWrite);
  ExpectNoHazard();
  device_->OnHostAccess(slot_.bytes().subspan(15), HostAccess::kWrite);
  const Hazard hazard = TheHazard(HazardKind::kWriteToSourceInFlight);
  EXPECT_EQ(hazard.second.offset, 15U);
  EXPECT_EQ(hazard.second.bytes, 1U);
}

TEST_F(HazardsTest, ABufferEndsWhereItsOwnBytesDoWhateverItsBlockHolds) {
  constexpr uint64_t kOwn = 100;
  const auto pinned_bytes = [&](const PinnedBuffer& buffer, uint64_t begin, uint64_t bytes) {
    return std::span<std::byte>(buffer.bytes().data() + begin, bytes);
  };
  for (const bool from_the_cache : {false, true}) {
    if (from_the_cache) {
      ASSERT_TRUE(device_->AllocatePinned(2 * PinnedBuffer::kAlignment));  // and released
    }
    const PinnedBuffer buffer = *device_->AllocatePinned(kOwn);
    EXPECT_TRUE(device_->CopyAsync(target_, pinned_bytes(buffer, 0, kOwn), a_));
    const Expected<void> beyond =
        device_->CopyAsync(target_, pinned_bytes(buffer, 0, kOwn + 1), a_);
    ASSERT_FALSE(beyond);
    EXPECT_EQ(beyond.error().code, ErrorCode::kInvalidArgument);
    ASSERT_TRUE(device_->SynchronizeStream(a_));
    ASSERT_TRUE(device_->CopyAsync(target_, pinned_bytes(buffer, 0, kOwn), a_));
    device_->OnHostAccess(pinned_bytes(buffer, kOwn, kOwn), HostAccess::kWrite);
    ExpectNoHazard();
    device_->OnHostAccess(pinned_bytes(buffer, kOwn - 1, kOwn), HostAccess::kWrite);
    EXPECT_EQ(TheHazard(HazardKind::kWriteToSourceInFlight).second.bytes, 1U);
    ASSERT_TRUE(device_->SynchronizeStream(a_));
  }
}

TEST_F(HazardsTest, AHostReadOfASourceInFlightIsNone) {
  ASSERT_TRUE(Copy(a_, target_, slot_));
  device_->OnHostAccess(slot_.bytes(), HostAccess::kRead);
  ASSERT_TRUE(Copy(b_, target_ + kBytes, slot_));
  ExpectNoHazard();
}

TEST_F(HazardsTest, AReleaseOfASourceInFlightIsReported) {
  ASSERT_TRUE(Copy(a_, target_, slot_));
  const Event event = RecordOn(a_);
  { const PinnedBuffer dies = std::move(slot_); }
  TheHazard(HazardKind::kReleaseOfSourceInFlight);
  ASSERT_TRUE(device_->Synchronize(event));
  ExpectNoHazard();  // nothing more about the same memory
}

TEST_F(HazardsTest, AReleaseAfterTheCompletionWasObservedIsNone) {
  ASSERT_TRUE(Copy(a_, target_, slot_));
  ASSERT_TRUE(device_->SynchronizeStream(a_));
  { const PinnedBuffer dies = std::move(slot_); }
  slot_ = *device_->AllocatePinned(kBytes);
  Fill(slot_, 1);
  ASSERT_TRUE(Copy(b_, target_, slot_));
  ExpectNoHazard();
}

TEST_F(HazardsTest, UseOfReleasedPinnedMemoryIsReported) {
  const std::span<std::byte> bytes = slot_.bytes();
  { const PinnedBuffer dies = std::move(slot_); }
  EXPECT_FALSE(device_->CopyAsync(target_, bytes, a_));
  TheHazard(HazardKind::kUseOfReleasedMemory);
  device_->OnHostAccess(bytes, HostAccess::kWrite);
  TheHazard(HazardKind::kUseOfReleasedMemory);
}

// --- Stores that nobody announced ---

TEST_F(HazardsTest, AnUnannouncedWriteIsFoundWhenTheCopyCompletes) {
  FillUnannounced(slot_, 1);
  ASSERT_TRUE(Copy(a_, target_, slot_));
  slot_.bytes()[5] = std::byte{9};
  device_->RunUntilIdle();
  const Hazard hazard = TheHazard(HazardKind::kUnannouncedWrite);
  EXPECT_EQ(hazard.first.offset, 5U);
  EXPECT_EQ(hazard.first.bytes, 1U);
}

TEST_F(HazardsTest, AnUnannouncedWriteAfterTheCompletionIsFoundWhenItIsObserved) {
  ASSERT_TRUE(Copy(a_, target_, slot_));
  device_->RunUntilIdle();
  FillUnannounced(slot_, 1);
  ExpectNoHazard();
  ASSERT_TRUE(device_->SynchronizeStream(a_));
  TheHazard(HazardKind::kUnannouncedWrite);
}

TEST_F(HazardsTest, AnUnannouncedWriteIsFoundByTheNextCopyOfTheSlot) {
  ASSERT_TRUE(Copy(a_, target_, slot_));
  FillUnannounced(slot_, 1);
  ASSERT_TRUE(Copy(a_, target_, slot_));
  TheHazard(HazardKind::kUnannouncedWrite);
}

TEST_F(HazardsTest, AnUnannouncedWriteIsFoundAtTheRelease) {
  ASSERT_TRUE(Copy(a_, target_, slot_));
  device_->RunUntilIdle();
  FillUnannounced(slot_, 1);
  { const PinnedBuffer dies = std::move(slot_); }
  const std::vector<Hazard> hazards = device_->hazards();
  ASSERT_EQ(hazards.size(), 2U);  // the write, and the release itself
  EXPECT_EQ(hazards[0].kind, HazardKind::kUnannouncedWrite);
  EXPECT_EQ(hazards[1].kind, HazardKind::kReleaseOfSourceInFlight);
}

TEST_F(HazardsTest, UnannouncedWritesAfterTheCompletionWasObservedAreFree) {
  for (int value = 0; value < 5; ++value) {
    FillUnannounced(slot_, value);
    ASSERT_TRUE(Copy(a_, target_, slot_));
    ASSERT_TRUE(device_->SynchronizeStream(a_));
  }
  ExpectNoHazard();
}

TEST_F(HazardsTest, AnAnnouncedWriteIsReportedOnce) {
  ASSERT_TRUE(Copy(a_, target_, slot_));
  Fill(slot_, 1);
  ASSERT_TRUE(device_->SynchronizeStream(a_));
  TheHazard(HazardKind::kWriteToSourceInFlight);
}

// --- Device memory ---

TEST_F(HazardsTest, AReaderOnAnotherStreamMustWaitForTheCopy) {
  for (const bool waits : {false, true}) {
    Reset({});
    ASSERT_TRUE(Copy(a_, target_, slot_));
    const Event event = RecordOn(a_);
    if (waits) {
      ASSERT_TRUE(device_->WaitEvent(b_, event));
    }
    ASSERT_TRUE(device_->Launch(b_, Reads(target_)));
    if (waits) {
      ExpectNoHazard();
      continue;
    }
    const Hazard hazard = TheHazard(HazardKind::kUnorderedAccess);
    EXPECT_EQ(hazard.first.lane, "a");
    EXPECT_TRUE(hazard.first.writes);
    EXPECT_EQ(hazard.second.lane, "b");
    EXPECT_FALSE(hazard.second.writes);
    EXPECT_EQ(hazard.first.memory, "target");
    EXPECT_NE(hazard.missing.find("b does not wait for an event recorded on a after copy #"),
              std::string::npos)
        << hazard.missing;
  }
}

TEST_F(HazardsTest, ACopyMustComeAfterEarlierReadersOfItsDestination) {
  for (const bool waits : {false, true}) {
    Reset({});
    ASSERT_TRUE(device_->Launch(b_, Reads(target_)));
    const Event read = RecordOn(b_);
    if (waits) {
      ASSERT_TRUE(device_->WaitEvent(a_, read));
    }
    ASSERT_TRUE(Copy(a_, target_, slot_));
    if (waits) {
      ExpectNoHazard();
    } else {
      TheHazard(HazardKind::kUnorderedAccess);
    }
  }
}

TEST_F(HazardsTest, AnOrderThroughTheHostCounts) {
  ASSERT_TRUE(Copy(a_, target_, slot_));
  ASSERT_TRUE(device_->SynchronizeStream(a_));
  ASSERT_TRUE(device_->Launch(b_, Reads(target_)));
  ExpectNoHazard();
}

TEST_F(HazardsTest, AnOrderOverSeveralStreamsCounts) {
  const Stream c = device_->NewStream("c");
  ASSERT_TRUE(Copy(a_, target_, slot_));
  const Event first = RecordOn(a_);
  ASSERT_TRUE(device_->WaitEvent(c, first));
  const Event second = RecordOn(c);
  ASSERT_TRUE(device_->WaitEvent(b_, second));
  ASSERT_TRUE(device_->Launch(b_, Reads(target_)));
  ExpectNoHazard();
}

TEST_F(HazardsTest, AWaitIssuedAfterTheReaderOrdersItNot) {
  ASSERT_TRUE(Copy(a_, target_, slot_));
  const Event event = RecordOn(a_);
  ASSERT_TRUE(device_->Launch(b_, Reads(target_)));
  ASSERT_TRUE(device_->WaitEvent(b_, event));
  TheHazard(HazardKind::kUnorderedAccess);
}

TEST_F(HazardsTest, AWaitForAnOlderRecordOrdersNothingThatCameAfterIt) {
  const Event early = RecordOn(a_);
  ASSERT_TRUE(Copy(a_, target_, slot_));
  ASSERT_TRUE(device_->WaitEvent(b_, early));
  ASSERT_TRUE(device_->Launch(b_, Reads(target_)));
  TheHazard(HazardKind::kUnorderedAccess);
}

TEST_F(HazardsTest, AWaitKeepsTheRecordThatItSawWhenTheEventIsRecordedAgain) {
  ASSERT_TRUE(Copy(a_, target_, slot_));
  Event event = RecordOn(a_);
  ASSERT_TRUE(device_->WaitEvent(b_, event));
  ASSERT_TRUE(device_->Record(event, device_->NewStream()));
  ASSERT_TRUE(device_->Launch(b_, Reads(target_)));
  ExpectNoHazard();
  ASSERT_TRUE(device_->WaitEvent(device_->NewStream("late"), event));
}

TEST_F(HazardsTest, ReadersNeedNoOrderAmongThemselvesAndNeighboursNone) {
  ASSERT_TRUE(device_->Launch(a_, Reads(target_)));
  ASSERT_TRUE(device_->Launch(b_, Reads(target_)));
  ASSERT_TRUE(device_->Launch(a_, Writes(target_ + kBytes)));
  ASSERT_TRUE(device_->Launch(b_, Writes(target_ + 2 * kBytes)));
  ExpectNoHazard();
}

TEST_F(HazardsTest, OneByteOfOverlapIsEnough) {
  ASSERT_TRUE(device_->Launch(a_, Writes(target_, kBytes + 1)));
  ASSERT_TRUE(device_->Launch(b_, Writes(target_ + kBytes)));
  const Hazard hazard = TheHazard(HazardKind::kUnorderedAccess);
  EXPECT_EQ(hazard.first.offset, kBytes);
  EXPECT_EQ(hazard.first.bytes, 1U);
}

TEST_F(HazardsTest, ALaterOrderedReadDoesNotHideAnEarlierUnorderedOne) {
  const Stream c = device_->NewStream("c");
  ASSERT_TRUE(device_->Launch(b_, Reads(target_)));
  ASSERT_TRUE(device_->Launch(a_, Reads(target_)));
  const Event read = RecordOn(a_);
  ASSERT_TRUE(device_->WaitEvent(c, read));
  ASSERT_TRUE(device_->Launch(c, Writes(target_)));
  EXPECT_EQ(TheHazard(HazardKind::kUnorderedAccess).first.lane, "b");
}

TEST_F(HazardsTest, MembersOfABatchMustNotOverlap) {
  const std::array<CopyEntry, 2> entries = {CopyEntry{target_, slot_.bytes()},
                                            CopyEntry{target_ + 32, slot_.bytes()}};
  ASSERT_TRUE(device_->CopyBatchAsync(entries, a_));
  const Hazard hazard = TheHazard(HazardKind::kUnorderedAccess);
  EXPECT_NE(hazard.missing.find("batch"), std::string::npos);
  EXPECT_EQ(hazard.first.offset, 32U);
}

TEST_F(HazardsTest, UseOfFreedDeviceMemoryIsReported) {
  ASSERT_TRUE(device_->FreeDevice(target_));
  EXPECT_EQ(Copy(a_, target_, slot_).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(TheHazard(HazardKind::kUseOfReleasedMemory).missing, "target was freed");
}

TEST_F(HazardsTest, AKernelThatTouchesWhatItDidNotDeclareIsReported) {
  KernelSpec kernel = Reads(target_);
  kernel.run = [&](const KernelMemory& memory) {
    EXPECT_EQ(memory.Read(target_, kBytes).size(), kBytes);
    EXPECT_EQ(memory.Write(target_, 1).size(), 1U);  // declared as read only
    EXPECT_TRUE(memory.Read(DevicePtr(uint64_t{64}), 1).empty());
  };
  ASSERT_TRUE(device_->Launch(a_, kernel));
  device_->RunUntilIdle();
  TheHazard(HazardKind::kUndeclaredAccess);
}

// --- Host functions ---

TEST_F(HazardsTest, AHostFunctionRunsInStreamOrderAndMayWriteASource) {
  FillUnannounced(slot_, 1);
  ASSERT_TRUE(device_->LaunchHostFunc(a_, [&] { Fill(slot_, 2); }));
  ASSERT_TRUE(Copy(a_, target_, slot_));
  ASSERT_TRUE(device_->SynchronizeStream(a_));
  EXPECT_EQ(At(target_), testing::BytesOf(2, kBytes));
  ExpectNoHazard();
}

TEST_F(HazardsTest, AnUnannouncedWriteIsFoundBesideHostFunctionsToo) {
  ASSERT_TRUE(device_->LaunchHostFunc(a_, [] {}));
  ASSERT_TRUE(Copy(a_, target_, slot_));
  device_->AdvanceTime(std::chrono::microseconds(1));  // the copy has started
  FillUnannounced(slot_, 1);
  device_->RunUntilIdle();
  TheHazard(HazardKind::kUnannouncedWrite);
}

TEST_F(HazardsTest, AHostFunctionAfterTheCopyMayWriteItsSource) {
  ASSERT_TRUE(Copy(a_, target_, slot_));
  ASSERT_TRUE(device_->LaunchHostFunc(a_, [&] { Fill(slot_, 2); }));
  ASSERT_TRUE(device_->SynchronizeStream(a_));
  ExpectNoHazard();
}

TEST_F(HazardsTest, AHostFunctionOnAnotherStreamMayNot) {
  ASSERT_TRUE(Copy(a_, target_, slot_));
  ASSERT_TRUE(device_->LaunchHostFunc(b_, [&] { Fill(slot_, 2); }));
  device_->RunUntilIdle();
  TheHazard(HazardKind::kWriteToSourceInFlight);
}

TEST_F(HazardsTest, AHostFunctionMayAnnounceTheSameBytesTwice) {
  ASSERT_TRUE(device_->LaunchHostFunc(a_, [&] {
    device_->OnHostAccess(slot_.bytes(), HostAccess::kRead);
    Fill(slot_, 1);
    Fill(slot_, 2);
  }));
  device_->RunUntilIdle();
  ExpectNoHazard();
}

TEST_F(HazardsTest, AHostFunctionThatRunsLateRacesWithReadsThatALaterOrderedReadFollowed) {
  for (const bool held : {true, false}) {
    Reset(Unpoisoned());
    if (held) {
      ASSERT_TRUE(device_->Hold(a_));
    }
    ASSERT_TRUE(device_->LaunchHostFunc(a_, [&] { Fill(slot_, 1); }));
    const Event event = RecordOn(a_);
    ASSERT_TRUE(Copy(b_, target_, slot_));  // unordered with the function
    ASSERT_TRUE(device_->WaitEvent(b_, event));
    ASSERT_TRUE(Copy(b_, target_ + kBytes, slot_));  // after it
    ASSERT_TRUE(device_->Release(a_));
    device_->RunUntilIdle();
    const Hazard hazard = TheHazard(HazardKind::kWriteToSourceInFlight);
    const HazardAccess& copy = held ? hazard.first : hazard.second;  // the function runs at once
    EXPECT_NE(copy.operation.find("to target + 0"), std::string::npos) << hazard.ToString();
  }
}

TEST_F(HazardsTest, AHostFunctionThatRunsLateRacesWithAnEarlierHostRead) {
  ASSERT_TRUE(device_->LaunchHostFunc(a_, [&] { Fill(slot_, 1); }));
  device_->OnHostAccess(slot_.bytes(), HostAccess::kRead);
  ASSERT_TRUE(Copy(a_, target_, slot_));
  device_->RunUntilIdle();
  TheHazard(HazardKind::kUnorderedAccess);
}

TEST_F(HazardsTest, AHostFunctionMustNotCallTheDevice) {
  ASSERT_TRUE(device_->LaunchHostFunc(
      a_, [&] { EXPECT_EQ(device_->CreateEvent().error().code, ErrorCode::kFailedPrecondition); }));
  ASSERT_TRUE(device_->SynchronizeStream(a_));
  const Hazard hazard = TheHazard(HazardKind::kCallFromHostFunction);
  EXPECT_NE(hazard.first.operation.find("host function"), std::string::npos);
  EXPECT_NE(hazard.second.operation.find("create event"), std::string::npos);
}

TEST_F(HazardsTest, WorkAfterAHostFunctionWaitsForIt) {
  bool ran = false;
  ASSERT_TRUE(device_->LaunchHostFunc(a_, [&] { ran = true; }));
  ASSERT_TRUE(device_->Launch(a_, {.run = [&](const KernelMemory&) { EXPECT_TRUE(ran); }}));
  ASSERT_TRUE(device_->SynchronizeStream(a_));
  EXPECT_TRUE(ran);
}

// --- The detector itself ---

TEST_F(HazardsTest, WithoutTheDetectorNothingIsReported) {
  FakeOptions options;
  options.detect_hazards = false;
  Reset(options);
  ASSERT_TRUE(Copy(a_, target_, slot_));
  Fill(slot_, 1);
  ASSERT_TRUE(Copy(b_, target_, slot_));
  ASSERT_TRUE(device_->SynchronizeDevice());
  ExpectNoHazard();
}

TEST_F(HazardsTest, HazardsBeyondTheLimitAreCounted) {
  FakeOptions options;
  options.max_hazards = 3;
  Reset(options);
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(Copy(a_, target_, slot_));
    Fill(slot_, i);
  }
  EXPECT_EQ(device_->hazards().size(), 3U);
  EXPECT_GE(device_->hazard_count(), 10U);
}

TEST_F(HazardsTest, PlainThreadsCountAsOneHostInTheOrderOfTheirCalls) {
  ASSERT_TRUE(Copy(a_, target_, slot_));
  const Event event = RecordOn(a_);
  std::thread([&] { ASSERT_TRUE(device_->Synchronize(event)); }).join();
  Fill(slot_, 1);
  ExpectNoHazard();
}

TEST_F(HazardsTest, TheTimeLineNamesBothAccessesAndTheMissingEdge) {
  device_->NameTask("engine");
  device_->NamePinned(slot_.bytes().data(), "token slot");
  ASSERT_TRUE(Copy(a_, target_, slot_));
  Fill(slot_, 1);
  const std::string text = device_->Timeline();
  for (const char* part : {"= engine", "= a", "!+", "token slot", "first   a: copy #",
                           "second  engine: host write #", "missing engine has not observed"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is missing in\n" << text;
  }
}

}  // namespace
}  // namespace h2d
