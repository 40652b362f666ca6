// Promises that are an order of device calls: what is called, in which order, and what never is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "h2d/device/testing/mock_device.h"
#include "h2d/stager/pinned_stager.h"

namespace h2d {
namespace {

using Kind = CopyOutcome::Kind;
using testing::_;
using testing::AnyNumber;
using testing::InSequence;
using testing::Mock;
using testing::Property;
using testing::Return;
using testing::SizeIs;
using testing::StrictMock;

Expected<void> DeviceError(int code) { return MakeError(ErrorCode::kDevice, "Lost.", code); }

// Whatever a test does not expect fails it, so that "no other call" needs no words.
class OrderOfCallsTest : public testing::Test {
 protected:
  void SetUp() override { MakeStager({.slot_bytes = 256, .initial_slots = 2, .max_slots = 2}); }

  void MakeStager(const StagerOptions& options) {
    stager_.reset();
    EXPECT_CALL(*mock_, MemorySpace).Times(AnyNumber());
    EXPECT_CALL(*mock_, AllocatePinned).Times(AnyNumber());
    EXPECT_CALL(*mock_, CreateEvent).Times(AnyNumber());
    auto made = PinnedStager::Create(mock_, options);
    ASSERT_TRUE(made) << made.error().message;
    stager_ = std::move(*made);
    EndSetUp();
  }

  void TearDown() override {
    EXPECT_CALL(*mock_, WaitAny).Times(AnyNumber());
    stager_.reset();
  }

  // From here on only the calls that a test expects may be made.
  void EndSetUp() {
    Mock::VerifyAndClearExpectations(mock_.get());
    EXPECT_CALL(*mock_, MemorySpace).Times(AnyNumber());
  }

  void ExpectOneCopy(uint64_t bytes, const Stream& stream) {
    EXPECT_CALL(*mock_, Inspect(On(stream)));
    EXPECT_CALL(*mock_, OnHostAccess(SizeIs(bytes), HostAccess::kWrite));
    EXPECT_CALL(*mock_, CopyAsync(DevicePtr(memory_.data()), SizeIs(bytes), On(stream)));
    EXPECT_CALL(*mock_, Record(_, On(stream)));
  }

  // Copies on `stream` and answers which slot's memory served it.
  const std::byte* SlotThatServes(const Stream& stream) {
    const std::byte* slot = nullptr;
    EXPECT_CALL(*mock_, Inspect);
    EXPECT_CALL(*mock_, OnHostAccess);
    EXPECT_CALL(*mock_, CopyAsync)
        .WillOnce([&slot](DevicePtr, std::span<const std::byte> source, const Stream&) {
          slot = source.data();
          return Expected<void>();
        });
    EXPECT_CALL(*mock_, Record);
    EXPECT_TRUE(stager_->Copy(To(values_.size()), values_, stream));
    return slot;
  }

  static testing::Matcher<const Stream&> On(const Stream& stream) {
    return Property(&Stream::id, stream.id());
  }

  Destination To(size_t count) { return Destination::Of(memory_.data(), count); }

  const std::shared_ptr<StrictMock<MockDevice>> mock_ = std::make_shared<StrictMock<MockDevice>>();
  const Stream stream_ = mock_->NewStream();
  const Stream other_ = mock_->NewStream();
  std::vector<int> values_ = {1, 2, 3};
  std::array<int, 64> memory_{};
  std::unique_ptr<PinnedStager> stager_;
};

TEST_F(OrderOfCallsTest, ACopyAsksAnnouncesCopiesRecordsAndNothingElse) {
  const InSequence order;
  ExpectOneCopy(16, stream_);
  EXPECT_TRUE(stager_->Copy(To(4), values_, stream_, -1));
}

TEST_F(OrderOfCallsTest, NoValuesAndNoPaddingMakeNoDeviceCall) {
  EXPECT_TRUE(stager_->Copy(To(4), std::vector<int>{}, stream_));
}

TEST_F(OrderOfCallsTest, BadInputMakesNoDeviceCall) {
  EXPECT_FALSE(stager_->Copy(To(1), values_, stream_));
  EXPECT_FALSE(stager_->Copy(Destination::Of<int>(DevicePtr(), 4), values_, stream_));
}

TEST_F(OrderOfCallsTest, ACapturingStreamIsRefusedBeforeAnythingIsRecorded) {
  auto mirror = stager_->NewMirror(To(3));
  ExpectOneCopy(12, stream_);
  ASSERT_TRUE(stager_->Copy(*mirror, values_, stream_));
  EndSetUp();
  EXPECT_CALL(*mock_, Inspect).Times(2).WillRepeatedly([](const Stream&) {
    return StreamStatus{.capturing = true, .id = 0};
  });
  EXPECT_EQ(stager_->Copy(To(4), values_, stream_).error().code, ErrorCode::kFailedPrecondition);
  EXPECT_EQ(stager_->Copy(*mirror, values_, stream_).error().code, ErrorCode::kFailedPrecondition)
      << "a hit is refused too";
}

TEST_F(OrderOfCallsTest, AMirrorHitOnlyAsksForTheStream) {
  auto mirror = stager_->NewMirror(To(3));
  ExpectOneCopy(12, stream_);
  ASSERT_TRUE(stager_->Copy(*mirror, values_, stream_));
  EndSetUp();
  EXPECT_CALL(*mock_, Inspect).Times(3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(stager_->Copy(*mirror, values_, stream_)->kind, Kind::kSkipped);
  }
}

TEST_F(OrderOfCallsTest, AHitOnAnotherStreamWaitsOnceForTheMirrorsLastCopy) {
  auto mirror = stager_->NewMirror(To(3));
  ExpectOneCopy(12, stream_);
  ASSERT_TRUE(stager_->Copy(*mirror, values_, stream_));
  EndSetUp();
  EXPECT_CALL(*mock_, Inspect).Times(2);
  EXPECT_CALL(*mock_, WaitEvent(On(other_), _));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(stager_->Copy(*mirror, values_, other_)->kind, Kind::kSkipped);
  }
}

TEST_F(OrderOfCallsTest, FullAndTrimmedCopiesOnAnotherStreamWaitBeforeTheyCopy) {
  auto mirror = stager_->NewMirror(To(3));
  ExpectOneCopy(12, stream_);
  ASSERT_TRUE(stager_->Copy(*mirror, values_, stream_));
  for (const bool forget : {false, true}) {
    EndSetUp();
    const Stream& stream = forget ? stream_ : other_;
    if (forget) mirror->Invalidate();
    const InSequence order;
    EXPECT_CALL(*mock_, Inspect(On(stream)));
    if (forget) EXPECT_CALL(*mock_, WaitAny).WillOnce(Return(Expected<std::optional<size_t>>(0)));
    EXPECT_CALL(*mock_, WaitEvent(On(stream), _));
    EXPECT_CALL(*mock_, OnHostAccess);
    EXPECT_CALL(*mock_, CopyAsync(_, SizeIs(forget ? 12 : 4), On(stream)));
    EXPECT_CALL(*mock_, Record(_, On(stream)));
    EXPECT_TRUE(stager_->Copy(*mirror, std::vector<int>{1, 2, forget ? 5 : 4}, stream));
  }
}

TEST_F(OrderOfCallsTest, AFailedCopyIsGuardedByARecordLikeOneThatMayRun) {
  const InSequence order;
  EXPECT_CALL(*mock_, Inspect);
  EXPECT_CALL(*mock_, OnHostAccess);
  EXPECT_CALL(*mock_, CopyAsync).WillOnce([](auto...) { return DeviceError(700); });
  EXPECT_CALL(*mock_, Record);
  auto outcome = stager_->Copy(To(3), values_, stream_);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().device_code, 700);
  EXPECT_EQ(stager_->stats().slots_in_use, 1u);
  EXPECT_EQ(stager_->stats().copies_issued, 0u);
}

TEST_F(OrderOfCallsTest, AMirrorForgetsAfterAFailedCopyAndKeepsItsOrder) {
  auto mirror = stager_->NewMirror(To(3));
  EXPECT_CALL(*mock_, Inspect).Times(AnyNumber());
  EXPECT_CALL(*mock_, OnHostAccess).Times(AnyNumber());
  EXPECT_CALL(*mock_, Record).Times(2);
  EXPECT_CALL(*mock_, CopyAsync)
      .WillOnce([](auto...) { return DeviceError(700); })
      .WillOnce([](auto...) { return Expected<void>(); });
  // A failed enqueue counts as a possible writer.
  EXPECT_CALL(*mock_, WaitEvent(On(other_), _));
  ASSERT_FALSE(stager_->Copy(*mirror, values_, stream_));
  EXPECT_FALSE(*mirror->Matches(values_));
  EXPECT_EQ(stager_->Copy(*mirror, values_, other_)->kind, Kind::kIssued);
}

// Slot 1: its record fails. Slot 2, later on the same stream, completes: it stands for both.
TEST_F(OrderOfCallsTest, AQuarantinedSlotComesBackWithALaterRecordOfItsStream) {
  EXPECT_CALL(*mock_, Inspect).Times(AnyNumber());
  EXPECT_CALL(*mock_, OnHostAccess).Times(AnyNumber());
  EXPECT_CALL(*mock_, CopyAsync).Times(4);
  EXPECT_CALL(*mock_, Record)
      .WillOnce([](auto&&...) { return DeviceError(719); })
      .WillRepeatedly([](auto&&...) { return Expected<void>(); });
  ASSERT_FALSE(stager_->Copy(To(3), values_, stream_));
  EXPECT_EQ(stager_->stats().slots_quarantined, 1u);
  ASSERT_TRUE(stager_->Copy(To(3), values_, stream_));

  EXPECT_CALL(*mock_, WaitAny).WillOnce(Return(Expected<std::optional<size_t>>(std::nullopt)));
  EXPECT_EQ(stager_->TryCopy(To(3), values_, stream_)->kind, Kind::kWouldBlock);
  EXPECT_CALL(*mock_, WaitAny(SizeIs(1), _)).WillOnce(Return(Expected<std::optional<size_t>>(0)));
  ASSERT_TRUE(stager_->TryCopy(To(3), values_, stream_));
  ASSERT_TRUE(stager_->TryCopy(To(3), values_, stream_));
  EXPECT_EQ(stager_->stats().slots_quarantined, 0u);
}

// Full of quarantined slots, the ring makes the later record itself, on the stream of the call.
TEST_F(OrderOfCallsTest, ARingFullOfQuarantinedSlotsComesBackWhenTheDeviceWorksAgain) {
  EXPECT_CALL(*mock_, Inspect).Times(AnyNumber());
  EXPECT_CALL(*mock_, OnHostAccess).Times(AnyNumber());
  EXPECT_CALL(*mock_, CopyAsync).Times(4);
  EXPECT_CALL(*mock_, Record)
      .WillOnce([](auto&&...) { return DeviceError(719); })
      .WillOnce([](auto&&...) { return DeviceError(719); })
      .WillRepeatedly([](auto&&...) { return Expected<void>(); });
  EXPECT_CALL(*mock_, WaitAny).WillRepeatedly(Return(Expected<std::optional<size_t>>(0)));
  EXPECT_CALL(*mock_, Now).Times(AnyNumber());
  ASSERT_FALSE(stager_->Copy(To(3), values_, stream_));
  ASSERT_FALSE(stager_->Copy(To(3), values_, stream_));
  EXPECT_EQ(stager_->stats().slots_quarantined, 2u);
  ASSERT_TRUE(stager_->Copy(To(3), values_, stream_));
  ASSERT_TRUE(stager_->TryCopy(To(3), values_, stream_));
  EXPECT_EQ(stager_->stats().slots_quarantined, 0u);
}

// On another stream nothing can be learnt of them, and waiting would be for ever.
TEST_F(OrderOfCallsTest, WithOnlyQuarantinedSlotsOfOtherStreamsACopyFailsAtOnce) {
  EXPECT_CALL(*mock_, Inspect).Times(AnyNumber());
  EXPECT_CALL(*mock_, OnHostAccess).Times(AnyNumber());
  EXPECT_CALL(*mock_, CopyAsync).Times(2);
  EXPECT_CALL(*mock_, Record).Times(2).WillRepeatedly([](auto&&...) { return DeviceError(719); });
  EXPECT_CALL(*mock_, Now).Times(AnyNumber());
  ASSERT_FALSE(stager_->Copy(To(3), values_, stream_));
  ASSERT_FALSE(stager_->Copy(To(3), values_, stream_));
  auto outcome = stager_->Copy(To(3), values_, other_);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, ErrorCode::kResourceExhausted);
}

// The mirror's last copy has no record: no other stream can be ordered after it, its own needs not.
TEST_F(OrderOfCallsTest, AnUnrecordedLastCopyRefusesOtherStreamsUntilItsOwnIsUsedAgain) {
  auto mirror = stager_->NewMirror(To(3));
  EXPECT_CALL(*mock_, Inspect).Times(AnyNumber());
  EXPECT_CALL(*mock_, OnHostAccess).Times(AnyNumber());
  EXPECT_CALL(*mock_, CopyAsync).Times(2);
  EXPECT_CALL(*mock_, Record)
      .WillOnce([](auto&&...) { return DeviceError(719); })
      .WillRepeatedly([](auto&&...) { return Expected<void>(); });
  ASSERT_FALSE(stager_->Copy(*mirror, values_, stream_));
  EXPECT_EQ(stager_->Copy(*mirror, values_, other_).error().code, ErrorCode::kUnavailable);
  ASSERT_TRUE(stager_->Copy(*mirror, values_, stream_));
  EXPECT_CALL(*mock_, WaitEvent(On(other_), _));
  EXPECT_EQ(stager_->Copy(*mirror, values_, other_)->kind, Kind::kSkipped);
}

TEST_F(OrderOfCallsTest, SteadyStateAllocatesNothingOfTheDevice) {
  EXPECT_CALL(*mock_, Inspect).Times(100);
  EXPECT_CALL(*mock_, OnHostAccess).Times(100);
  EXPECT_CALL(*mock_, CopyAsync).Times(100);
  EXPECT_CALL(*mock_, Record).Times(100);
  EXPECT_CALL(*mock_, WaitAny(_, testing::Field(&WaitBounds::timeout, std::chrono::nanoseconds(0))))
      .Times(AnyNumber());
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(stager_->Copy(To(3), values_, stream_));
}

// A sweep asks for the middle of a stream's list, then for the middle of its older half.
TEST_F(OrderOfCallsTest, ASweepHalvesTowardsTheOldest) {
  MakeStager({.slot_bytes = 256, .initial_slots = 8, .max_slots = 8});
  EXPECT_CALL(*mock_, Inspect).Times(AnyNumber());
  EXPECT_CALL(*mock_, OnHostAccess).Times(AnyNumber());
  EXPECT_CALL(*mock_, CopyAsync).Times(9);
  std::vector<const Event*> recorded;
  EXPECT_CALL(*mock_, Record).WillRepeatedly([&](Event& event, const Stream&) {
    recorded.push_back(&event);
    return Expected<void>();
  });
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(stager_->Copy(To(3), values_, stream_));
  std::vector<const Event*> asked;
  EXPECT_CALL(*mock_, WaitAny)
      .WillOnce([&](std::span<const Event* const> events, const WaitBounds&) {
        asked.assign(events.begin(), events.end());
        return std::optional<size_t>(1);
      });
  ASSERT_TRUE(stager_->Copy(To(3), values_, stream_));
  EXPECT_EQ(asked, (std::vector<const Event*>{recorded[4], recorded[2], recorded[1], recorded[0]}));
  EXPECT_EQ(stager_->stats().slots_in_use, 8u - 3u + 1u) << "three were known complete";
}

// A device that is far behind: what was asked in vain is not asked again before the oldest is
// complete, and then a little further each time.
TEST_F(OrderOfCallsTest, ASweepAsksAsFarAsTheOneBeforeSuggests) {
  MakeStager({.slot_bytes = 256, .initial_slots = 8, .max_slots = 8});
  EXPECT_CALL(*mock_, Inspect).Times(AnyNumber());
  EXPECT_CALL(*mock_, OnHostAccess).Times(AnyNumber());
  EXPECT_CALL(*mock_, CopyAsync).Times(AnyNumber());
  EXPECT_CALL(*mock_, Record).Times(AnyNumber());
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(stager_->Copy(To(3), values_, stream_));
  const InSequence order;
  const auto pending = [] { return Return(Expected<std::optional<size_t>>(std::nullopt)); };
  const auto first_complete = [] { return Return(Expected<std::optional<size_t>>(0)); };
  EXPECT_CALL(*mock_, WaitAny(SizeIs(4), _)).WillOnce(pending());
  EXPECT_CALL(*mock_, WaitAny(SizeIs(1), _)).WillOnce(pending());
  EXPECT_CALL(*mock_, WaitAny(SizeIs(1), _)).WillOnce(first_complete());  // frees one
  EXPECT_CALL(*mock_, WaitAny(SizeIs(2), _)).WillOnce(first_complete());  // frees two
  EXPECT_EQ(stager_->TryCopy(To(3), values_, stream_)->kind, Kind::kWouldBlock);
  EXPECT_EQ(stager_->TryCopy(To(3), values_, stream_)->kind, Kind::kWouldBlock);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(stager_->TryCopy(To(3), values_, stream_)->kind, Kind::kIssued);
  }
}

TEST_F(OrderOfCallsTest, ABatchIsOneCallOfWhatMustTravelAndOneRecord) {
  auto held = stager_->NewMirror(To(3));
  auto changed = stager_->NewMirror(Destination::Of(memory_.data() + 8, 3));
  ExpectOneCopy(12, stream_);
  ASSERT_TRUE(stager_->Copy(*held, values_, stream_));
  EndSetUp();
  const InSequence order;
  EXPECT_CALL(*mock_, Inspect(On(stream_)));
  EXPECT_CALL(*mock_, OnHostAccess(_, HostAccess::kWrite));
  EXPECT_CALL(*mock_, CopyBatchAsync(SizeIs(2), On(stream_)));
  EXPECT_CALL(*mock_, Record(_, On(stream_)));
  const std::vector<int> none;
  const std::array<BatchCopy, 4> copies = {
      BatchCopy::To(*held, values_), BatchCopy::To(*changed, values_),
      BatchCopy::To(Destination::Of(memory_.data() + 16, 4), none),
      BatchCopy::To(Destination::Of(memory_.data() + 32, 4), values_, -1)};
  auto outcome = stager_->CopyBatch(copies, stream_);
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(*outcome, (CopyOutcome{Kind::kTrimmed, 28}));
  EXPECT_EQ(memory_[10], 3);
  EXPECT_EQ(memory_[35], -1);
}

TEST_F(OrderOfCallsTest, ABatchOfHitsOrOfNothingTakesNoSlot) {
  auto mirror = stager_->NewMirror(To(3));
  ExpectOneCopy(12, stream_);
  ASSERT_TRUE(stager_->Copy(*mirror, values_, stream_));
  EndSetUp();
  EXPECT_EQ(stager_->CopyBatch({}, stream_)->kind, Kind::kSkipped);
  EXPECT_CALL(*mock_, Inspect(On(other_)));
  EXPECT_CALL(*mock_, WaitEvent(On(other_), _));
  const BatchCopy hit = BatchCopy::To(*mirror, values_);
  EXPECT_EQ(stager_->CopyBatch({&hit, 1}, other_)->kind, Kind::kSkipped);
}

TEST_F(OrderOfCallsTest, AFailedBatchIsGuardedAndNoMirrorBelievesIt) {
  auto a = stager_->NewMirror(To(3));
  auto b = stager_->NewMirror(Destination::Of(memory_.data() + 8, 3));
  const std::array<BatchCopy, 2> copies = {BatchCopy::To(*a, values_), BatchCopy::To(*b, values_)};
  const InSequence order;
  EXPECT_CALL(*mock_, Inspect);
  EXPECT_CALL(*mock_, OnHostAccess);
  EXPECT_CALL(*mock_, CopyBatchAsync).WillOnce([](auto...) { return DeviceError(700); });
  EXPECT_CALL(*mock_, Record);
  EXPECT_EQ(stager_->CopyBatch(copies, stream_).error().device_code, 700);
  EXPECT_FALSE(*a->Matches(values_));
  EXPECT_FALSE(*b->Matches(values_));
}

TEST_F(OrderOfCallsTest, AStepIsOneCopyAndAnUnchangedOneOnlyAsksForTheStream) {
  alignas(256) std::array<int, 64> slab{};
  StepLayout::Builder builder;
  const auto near = builder.Add<int>("near", 4);
  const auto far = builder.Add<int>("far", 4);
  auto writer = stager_->NewStepWriter(*std::move(builder).Build(), DevicePtr(slab.data()),
                                       {.cover_gap_bytes = 0});
  for (const bool changed : {true, false}) {
    EndSetUp();
    const InSequence order;
    EXPECT_CALL(*mock_, Inspect(On(stream_)));
    if (changed) {
      EXPECT_CALL(*mock_, OnHostAccess(SizeIs(28), HostAccess::kWrite));
      EXPECT_CALL(*mock_, CopyAsync(DevicePtr(slab.data()), SizeIs(28), On(stream_)));
      EXPECT_CALL(*mock_, Record(_, On(stream_)));
    }
    ASSERT_TRUE(writer->SetAt(near, 1, values_));
    ASSERT_TRUE(writer->Set(far, values_));
    ASSERT_TRUE(writer->SetAt(near, 0, std::vector<int>{7}));
    ASSERT_TRUE(writer->Submit(stream_));
  }
}

TEST_F(OrderOfCallsTest, ChangesOfAStepThatLieApartAreOneBatchCall) {
  alignas(256) std::array<int, 64> slab{};
  StepLayout::Builder builder;
  const auto first = builder.Add<int>("first", 4);
  const auto between = builder.Add<int>("between", 16, {.device_written = true});
  const auto last = builder.Add<int>("last", 4);
  static_cast<void>(between);
  auto writer = stager_->NewStepWriter(*std::move(builder).Build(), DevicePtr(slab.data()));
  const InSequence order;
  EXPECT_CALL(*mock_, Inspect);
  EXPECT_CALL(*mock_, OnHostAccess(SizeIs(24), HostAccess::kWrite));
  EXPECT_CALL(*mock_, CopyBatchAsync(SizeIs(2), On(stream_)));
  EXPECT_CALL(*mock_, Record);
  ASSERT_TRUE(writer->Set(first, values_));
  ASSERT_TRUE(writer->Set(last, values_));
  EXPECT_EQ(*writer->Submit(stream_), (CopyOutcome{Kind::kIssued, 24}));
}

TEST_F(OrderOfCallsTest, TheKthAllocationThatFailsInTheConstructorLeavesNothingOutstanding) {
  stager_.reset();
  for (int k = 0; k < 3; ++k) {
    const auto mock = std::make_shared<testing::NiceMock<MockDevice>>();
    int calls = 0;
    ON_CALL(*mock, CreateEvent).WillByDefault([&]() -> Expected<Event> {
      if (calls++ == k) return ResourceExhausted("No more events.");
      return HostDevice::Create()->CreateEvent();
    });
    auto made = PinnedStager::Create(mock, {.initial_slots = 3});
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().message, "No more events.");
    EXPECT_EQ(mock.use_count(), 1) << "the failed stager lets its device go";
  }
}

// What one stream freed last is in the caches of the core that feeds it, not in another's. The
// device completes at once; of what one look for completions sees, about half is freed. Copies of
// 4 KiB look each time that 64 more are in use.
TEST_F(OrderOfCallsTest, AStreamGetsBackTheSlotsThatItUsedThoughAnothersWereFreedLater) {
  MakeStager({.slot_bytes = 4096, .initial_slots = 512, .max_slots = 512});
  values_.resize(1024);
  std::set<const std::byte*> own;
  for (int i = 0; i < 32; ++i) {
    own.insert(SlotThatServes(stream_));
    SlotThatServes(other_);
  }
  EXPECT_CALL(*mock_, WaitAny);
  EXPECT_TRUE(own.contains(SlotThatServes(stream_))) << "that looked, and freed half";
  Mock::VerifyAndClearExpectations(mock_.get());
  EndSetUp();
  for (int i = 0; i < 63; ++i) SlotThatServes(other_);
  EXPECT_CALL(*mock_, WaitAny);
  EXPECT_FALSE(own.contains(SlotThatServes(other_))) << "that looked and freed more";
  EXPECT_TRUE(own.contains(SlotThatServes(stream_)));
  EXPECT_FALSE(own.contains(SlotThatServes(other_)));
}

// Strict: neither a look for completions nor a growth happens.
TEST_F(OrderOfCallsTest, AStreamWithoutFreeSlotsOfItsOwnTakesAnothersBeforeItAsksTheDevice) {
  MakeStager({.slot_bytes = 256, .initial_slots = 4, .max_slots = 4});
  std::set<const std::byte*> first;
  for (int i = 0; i < 4; ++i) first.insert(SlotThatServes(stream_));
  EXPECT_CALL(*mock_, WaitAny);
  SlotThatServes(stream_);  // frees three and takes one
  Mock::VerifyAndClearExpectations(mock_.get());
  EndSetUp();
  EXPECT_TRUE(first.contains(SlotThatServes(other_)));
  EXPECT_TRUE(first.contains(SlotThatServes(other_)));
}

}  // namespace
}  // namespace h2d
