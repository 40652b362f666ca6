// What needs no delayed completion: values, errors and bookkeeping, over plain host memory.
#include "h2d/stager/pinned_stager.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "h2d/device/host/host_device.h"

namespace h2d {

// Sampling parameters as an engine packs them: no padding bytes, so its bits are its value.
struct Sampling {
  float temperature;
  float top_p;
};

template <>
inline constexpr bool kBitsAreValue<Sampling> = true;

namespace {

using Kind = CopyOutcome::Kind;

struct WithPadding {
  char a;
  int b;
};
static_assert(Element<int32_t> && Element<float> && Element<Sampling>);
static_assert(!Element<WithPadding>, "padding bytes are not values");
static_assert(!Element<int*>, "a host address means nothing on the device");

class PinnedStagerTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made =
        PinnedStager::Create(device_, {.slot_bytes = 256, .initial_slots = 2, .max_slots = 4});
    ASSERT_TRUE(made) << made.error().message;
    stager_ = std::move(*made);
  }

  Destination To(size_t count) { return Destination::Of(memory_.data(), count); }

  // Every byte of the destination memory as the test left it, but for the given prefix.
  std::vector<int> Memory(size_t count) const { return {memory_.begin(), memory_.begin() + count}; }

  static void ExpectError(const Expected<CopyOutcome>& outcome, ErrorCode code, const char* part) {
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, code) << outcome.error().ToString();
    EXPECT_NE(outcome.error().message.find(part), std::string::npos) << outcome.error().message;
  }

  // After an error the next good call works.
  void ExpectStillWorks() {
    const std::vector<int> values = {41, 42};
    auto outcome = stager_->Copy(To(2), values, stream_);
    ASSERT_TRUE(outcome) << outcome.error().message;
    EXPECT_EQ(Memory(2), values);
  }

  std::shared_ptr<HostDevice> device_ = HostDevice::Create();
  Stream stream_ = device_->NewStream();
  std::unique_ptr<PinnedStager> stager_;
  std::array<int, 64> memory_{};
};

TEST_F(PinnedStagerTest, ValuesThenPaddingArriveAndNothingElseIsTouched) {
  memory_.fill(9);
  const std::vector<int> values = {1, 3};
  auto outcome = stager_->Copy(To(4), values, stream_, -1);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(*outcome, (CopyOutcome{Kind::kIssued, 16}));
  EXPECT_EQ(Memory(6), (std::vector<int>{1, 3, -1, -1, 9, 9}));
}

TEST_F(PinnedStagerTest, WithoutPaddingOnlyTheRowsOfTheValuesChange) {
  memory_.fill(9);
  const std::array<int, 2> values = {1, 3};
  auto outcome = stager_->Copy(To(4), values, stream_);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->bytes_sent, 8u);
  EXPECT_EQ(Memory(5), (std::vector<int>{1, 3, 9, 9, 9}));
}

TEST_F(PinnedStagerTest, ZeroValuesWithPaddingFillTheWholeDestination) {
  memory_.fill(9);
  auto outcome = stager_->Copy(To(3), std::vector<int>{}, stream_, 7);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(Memory(4), (std::vector<int>{7, 7, 7, 9}));
}

TEST_F(PinnedStagerTest, ZeroValuesWithoutPaddingAreASuccessEvenForANullDestination) {
  auto outcome = stager_->Copy(Destination{}, std::vector<int>{}, stream_);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(*outcome, (CopyOutcome{Kind::kSkipped, 0}));
  EXPECT_EQ(stager_->stats().copies_asked, 0u);
}

TEST_F(PinnedStagerTest, StructsOfFloatsAreStaged) {
  std::array<Sampling, 2> destination{};
  const std::array<Sampling, 2> values = {Sampling{0.5f, 0.9f}, Sampling{1.0f, 0.1f}};
  ASSERT_TRUE(stager_->Copy(Destination::Of(destination.data(), 2), values, stream_));
  EXPECT_EQ(std::memcmp(&destination, &values, sizeof(values)), 0);
}

TEST_F(PinnedStagerTest, MirrorSkipsWhatTheDestinationHoldsAndTrimsTheRest) {
  auto mirror = stager_->NewMirror(To(4));
  ASSERT_TRUE(mirror);
  std::vector<int> values = {1, 2, 3, 4};
  EXPECT_EQ(*stager_->Copy(*mirror, values, stream_), (CopyOutcome{Kind::kIssued, 16}));
  EXPECT_EQ(*stager_->Copy(*mirror, values, stream_), (CopyOutcome{Kind::kSkipped, 0}));
  values[1] = 20;
  EXPECT_EQ(*stager_->Copy(*mirror, values, stream_), (CopyOutcome{Kind::kTrimmed, 4}));
  EXPECT_EQ(Memory(4), values);
  EXPECT_TRUE(*mirror->Matches(values));
  const StagerStats stats = stager_->stats();
  EXPECT_EQ(stats.copies_issued, 1u);
  EXPECT_EQ(stats.copies_trimmed, 1u);
  EXPECT_EQ(stats.copies_skipped, 1u);
  EXPECT_EQ(stats.bytes_asked, 48u);
  EXPECT_EQ(stats.bytes_sent, 20u);
}

TEST_F(PinnedStagerTest, PaddingIsPartOfTheImage) {
  auto mirror = stager_->NewMirror(To(3));
  ASSERT_TRUE(stager_->Copy(*mirror, std::vector<int>{1, 3}, stream_, -1));
  auto outcome = stager_->Copy(*mirror, std::vector<int>{1, 3, -1}, stream_);
  EXPECT_EQ(outcome->kind, Kind::kSkipped);
}

TEST_F(PinnedStagerTest, AShorterImageWithoutPaddingLeavesTheKnownTail) {
  auto mirror = stager_->NewMirror(To(3));
  ASSERT_TRUE(stager_->Copy(*mirror, std::vector<int>{1, 2, 3}, stream_));
  EXPECT_EQ(*stager_->Copy(*mirror, std::vector<int>{8}, stream_), (CopyOutcome{Kind::kIssued, 4}));
  EXPECT_EQ(stager_->Copy(*mirror, std::vector<int>{8, 2, 3}, stream_)->kind, Kind::kSkipped);
}

TEST_F(PinnedStagerTest, ZeroAndMinusZeroDifferAndEqualNansMatch) {
  std::array<float, 2> destination{};
  auto mirror = stager_->NewMirror(Destination::Of(destination.data(), 2));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  ASSERT_TRUE(stager_->Copy(*mirror, std::vector<float>{0.0f, nan}, stream_));
  EXPECT_EQ(stager_->Copy(*mirror, std::vector<float>{0.0f, nan}, stream_)->kind, Kind::kSkipped);
  EXPECT_EQ(stager_->Copy(*mirror, std::vector<float>{-0.0f, nan}, stream_)->kind, Kind::kTrimmed);
  EXPECT_TRUE(std::signbit(destination[0]));
}

TEST_F(PinnedStagerTest, InvalidatedAndReboundMirrorsCopyInFull) {
  auto mirror = stager_->NewMirror(To(2));
  const std::vector<int> values = {1, 2};
  ASSERT_TRUE(stager_->Copy(*mirror, values, stream_));
  mirror->Invalidate();
  EXPECT_FALSE(*mirror->Matches(values));
  EXPECT_EQ(stager_->Copy(*mirror, values, stream_)->kind, Kind::kIssued);
  ASSERT_TRUE(mirror->Rebind(Destination::Of(memory_.data() + 8, 2)));
  EXPECT_EQ(stager_->Copy(*mirror, values, stream_)->kind, Kind::kIssued);
  EXPECT_EQ(memory_[9], 2);
}

TEST_F(PinnedStagerTest, APlainCopyIntoAMirroredRangeMakesItForget) {
  auto mirror = stager_->NewMirror(To(4));
  const std::vector<int> values = {1, 2, 3, 4};
  ASSERT_TRUE(stager_->Copy(*mirror, values, stream_));
  ASSERT_TRUE(stager_->Copy(Destination::Of(memory_.data() + 3, 4), values, stream_));
  EXPECT_EQ(stager_->Copy(*mirror, values, stream_)->kind, Kind::kIssued);
  EXPECT_EQ(Memory(4), values);
}

TEST_F(PinnedStagerTest, RecordTellsTheMirrorWhatTheCallerWrote) {
  auto mirror = stager_->NewMirror(To(2));
  memory_[0] = 5;
  memory_[1] = 6;
  ASSERT_TRUE(mirror->Record(std::vector<int>{5, 6}, stream_));
  EXPECT_EQ(stager_->Copy(*mirror, std::vector<int>{5, 6}, stream_)->kind, Kind::kSkipped);
}

TEST_F(PinnedStagerTest, BadInputIsRefusedWithItsValuesAndChangesNothing) {
  const std::vector<int> three = {1, 2, 3};
  ExpectError(stager_->Copy(To(2), three, stream_), ErrorCode::kInvalidArgument, "3 values");
  ExpectError(stager_->Copy(Destination::Of<int>(DevicePtr(), 3), three, stream_),
              ErrorCode::kInvalidArgument, "null");
  ExpectError(stager_->Copy(To(3), std::vector<double>{1.0}, stream_), ErrorCode::kInvalidArgument,
              "elements of 8 bytes");
  Destination huge = To(3);
  huge.count = std::numeric_limits<uint64_t>::max() / 2;
  ExpectError(stager_->Copy(huge, three, stream_), ErrorCode::kInvalidArgument, "64 bits");
  huge = Destination{DevicePtr(~uint64_t{0} - 3), 3, sizeof(int)};
  ExpectError(stager_->Copy(huge, three, stream_), ErrorCode::kInvalidArgument, "64 bits");
  Destination untyped = To(3);
  untyped.element_bytes = 0;
  ExpectError(stager_->Copy(untyped, three, stream_), ErrorCode::kInvalidArgument, "element_bytes");
  const auto other = HostDevice::Create();
  ExpectError(stager_->Copy(To(3), three, other->NewStream()), ErrorCode::kInvalidArgument,
              "stream");
  EXPECT_EQ(Memory(3), (std::vector<int>{0, 0, 0}));
  EXPECT_EQ(stager_->stats().errors, 7u);
  EXPECT_EQ(stager_->stats().slots_in_use, 0u);
  ExpectStillWorks();
}

TEST_F(PinnedStagerTest, ACopyBeyondThePinnedLimitIsRefused) {
  auto small = PinnedStager::Create(
      device_, {.slot_bytes = 256, .initial_slots = 1, .max_pinned_bytes = 512});
  ASSERT_TRUE(small);
  const std::vector<int> values(129);
  std::vector<int> destination(129);
  auto outcome = (*small)->Copy(Destination::Of(destination.data(), 129), values, stream_);
  ExpectError(outcome, ErrorCode::kResourceExhausted, "max_pinned_bytes");
  ASSERT_TRUE((*small)->Copy(Destination::Of(destination.data(), 129),
                             std::span<const int>(values).first(128), stream_));
  EXPECT_LE((*small)->stats().pinned_bytes_most, 512u);
}

TEST_F(PinnedStagerTest, IdleMemoryOfOneSizeMakesRoomForAnother) {
  auto small = PinnedStager::Create(
      device_, {.slot_bytes = 256, .initial_slots = 4, .max_pinned_bytes = 1024});
  ASSERT_TRUE(small);
  for (int round = 0; round < 3; ++round) {
    std::array<int, 256> destination{};
    const std::vector<int> values(256, round + 1);
    ASSERT_TRUE((*small)->Copy(Destination::Of(destination.data(), 256), values, stream_));
    EXPECT_EQ(destination[255], round + 1);
    for (int i = 0; i < 4; ++i) ASSERT_TRUE((*small)->Copy(To(1), std::vector<int>{i}, stream_));
  }
  EXPECT_LE((*small)->stats().pinned_bytes_most, 1024u);
}

// Those are still in the caches; all of a wide ring's slots are not. A look frees half of what is
// listed, and is made each time that 256 KiB more are in use, or 256 slots.
TEST_F(PinnedStagerTest, AWideRingGoesOnWithTheSlotsThatItUsedLast) {
  for (const auto& [count, most] : {std::pair<size_t, uint32_t>{1024, 128}, {1, 512}}) {
    auto wide = PinnedStager::Create(
        device_, {.slot_bytes = count * sizeof(int), .initial_slots = 1024, .max_slots = 1024});
    ASSERT_TRUE(wide);
    std::vector<int> to(count);
    const std::vector<int> values(count, 7);
    for (int i = 0; i < 2000; ++i)
      ASSERT_TRUE((*wide)->Copy(Destination::Of(to.data(), count), values, stream_));
    EXPECT_LE((*wide)->stats().slots_in_use_most, most);
    EXPECT_EQ((*wide)->stats().growths, 0u);
  }
}

// Nothing is in flight for long on this device, so that a sweep frees half of what was listed.
TEST_F(PinnedStagerTest, SoDoesOneWhoseThreadCopiesOnTwoStreamsInTurns) {
  constexpr size_t kCount = 1024;
  auto wide = PinnedStager::Create(
      device_, {.slot_bytes = kCount * sizeof(int), .initial_slots = 512, .max_slots = 512});
  ASSERT_TRUE(wide);
  const Stream other = device_->NewStream();
  std::vector<int> to(kCount);
  const std::vector<int> values(kCount, 7);
  for (int i = 0; i < 2000; ++i) {
    const Stream& stream = i % 2 == 0 ? stream_ : other;
    ASSERT_TRUE((*wide)->Copy(Destination::Of(to.data(), kCount), values, stream));
  }
  EXPECT_LE((*wide)->stats().slots_in_use_most, 256u);
}

// The host device completes at once, so no more than a few are ever in flight.
TEST_F(PinnedStagerTest, AWideRingOfLargeSlotsGoesOnWithTheFewThatItUsedLast) {
  constexpr size_t kCount = (size_t{1} << 20) / sizeof(int);
  auto wide = PinnedStager::Create(
      device_, {.slot_bytes = kCount * sizeof(int), .initial_slots = 16, .max_slots = 16});
  ASSERT_TRUE(wide);
  const std::vector<int> values(kCount, 7);
  std::vector<int> to(kCount);
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE((*wide)->Copy(Destination::Of(to.data(), kCount), values, stream_));
  }
  EXPECT_LE((*wide)->stats().slots_in_use_most, 2U);
  EXPECT_EQ(to, values);
}

// They are the warm ones; without the look at the youngest, eight or sixteen would take turns.
TEST_F(PinnedStagerTest, WhereTheDeviceIsIdleAFewSlotsTakeTurns) {
  for (const size_t bytes : {size_t{16} << 10, size_t{64} << 10}) {
    auto wide =
        PinnedStager::Create(device_, {.slot_bytes = bytes, .initial_slots = 64, .max_slots = 64});
    ASSERT_TRUE(wide);
    std::vector<std::byte> to(bytes);
    std::set<const std::byte*> used;
    for (int i = 0; i < 200; ++i) {
      auto lease = (*wide)->Acquire(bytes);
      ASSERT_TRUE(lease);
      if (i >= 120) used.insert(lease->bytes().data());
      ASSERT_TRUE(lease->Submit(Destination::Of(to.data(), bytes), stream_));
    }
    EXPECT_LE(used.size(), 5U) << bytes;
  }
}

// Whoever acquires a slot has not said on which stream it will travel. From 1 MiB on completions
// are looked for each time, else now and then.
TEST_F(PinnedStagerTest, LeasesGoOnWithTheSlotsThatWereUsedLast) {
  for (const auto& [bytes, most] : {std::pair<size_t, size_t>{size_t{1} << 20, 4},
                                    std::pair<size_t, size_t>{size_t{1} << 18, 20}}) {
    auto wide = PinnedStager::Create(
        device_, {.slot_bytes = size_t{1} << 18, .initial_slots = 48, .max_slots = 64});
    ASSERT_TRUE(wide);
    std::vector<std::byte> to(bytes);
    std::set<const std::byte*> used;
    std::optional<SlotLease> before;
    for (int i = 0; i < 80; ++i) {
      auto lease = (*wide)->Acquire(bytes);
      ASSERT_TRUE(lease);
      used.insert(lease->bytes().data());
      if (before) {
        ASSERT_TRUE(before->Submit(Destination::Of(to.data(), bytes), stream_));
      }
      before = std::move(*lease);
    }
    EXPECT_LE(used.size(), most) << bytes;
    EXPECT_EQ((*wide)->stats().growths, 0U) << bytes;
  }
}

TEST_F(PinnedStagerTest, ARingOfSmallSlotsGrowsUntilManyCopiesShareAQuestion) {
  auto small = PinnedStager::Create(device_, {.slot_bytes = 256, .initial_slots = 1});
  ASSERT_TRUE(small);
  for (int i = 0; i < 200; ++i) ASSERT_TRUE((*small)->Copy(To(1), std::vector<int>{i}, stream_));
  EXPECT_GE((*small)->stats().slots_in_use_most, 32u);
  EXPECT_LE((*small)->stats().pinned_bytes_most, 64u * 256u);
}

TEST_F(PinnedStagerTest, MirrorsOfOneDeviceMemoryAreDisjointAcrossStagers) {
  auto mirror = stager_->NewMirror(To(4));
  ASSERT_TRUE(mirror);
  auto other = PinnedStager::Create(device_);
  auto overlapping = (*other)->NewMirror(Destination::Of(memory_.data() + 3, 4));
  ASSERT_FALSE(overlapping);
  EXPECT_EQ(overlapping.error().code, ErrorCode::kInvalidArgument);
  auto beside = (*other)->NewMirror(Destination::Of(memory_.data() + 4, 4));
  ASSERT_TRUE(beside);
  EXPECT_FALSE(beside->Rebind(To(1)));
  { H2DMirror ends = std::move(*mirror); }
  EXPECT_TRUE(beside->Rebind(To(1)));
}

TEST_F(PinnedStagerTest, BadMirrorsAreRefused) {
  EXPECT_FALSE(stager_->NewMirror(Destination::Of<int>(DevicePtr(), 3)));
  EXPECT_FALSE(stager_->NewMirror(To(0)));
  EXPECT_FALSE(stager_->NewMirror(Destination{DevicePtr(uint64_t{8}), ~uint64_t{0}, 4}));
  auto other = PinnedStager::Create(device_);
  auto mirror = (*other)->NewMirror(To(2));
  const std::vector<int> values = {1, 2};
  ExpectError(stager_->Copy(*mirror, values, stream_), ErrorCode::kInvalidArgument,
              "another stager");
  H2DMirror moved = std::move(*mirror);
  ExpectError((*other)->Copy(*mirror, values, stream_), ErrorCode::kFailedPrecondition,
              "moved from");
  other->reset();
  EXPECT_EQ(moved.Matches(values).error().code, ErrorCode::kFailedPrecondition);
  EXPECT_EQ(moved.Record(values, stream_).error().code, ErrorCode::kFailedPrecondition);
  EXPECT_EQ(moved.Rebind(To(1)).error().code, ErrorCode::kFailedPrecondition);
  moved.Invalidate();
  ExpectStillWorks();
}

// A size from a broken configuration must not bring the process down.
TEST_F(PinnedStagerTest, AMirrorLargerThanTheHostIsAnErrorAndNoCrash) {
  auto mirror = stager_->NewMirror(Destination{DevicePtr(uint64_t{256}), uint64_t{1} << 60, 4});
  ASSERT_FALSE(mirror);
  EXPECT_EQ(mirror.error().code, ErrorCode::kResourceExhausted) << mirror.error().message;
  auto small = stager_->NewMirror(To(2));
  ASSERT_TRUE(small);
  EXPECT_FALSE(small->Rebind(Destination{DevicePtr(uint64_t{256}), uint64_t{1} << 60, 4}));
  EXPECT_TRUE(stager_->Copy(*small, std::vector<int>{1, 2}, stream_));
}

TEST_F(PinnedStagerTest, ALeaseIsWrittenInPlaceAndSubmitted) {
  auto lease = stager_->Acquire(8);
  ASSERT_TRUE(lease);
  ASSERT_EQ(lease->as<int>().size(), 2u);
  lease->as<int>()[0] = 3;
  lease->as<int>()[1] = 4;
  EXPECT_FALSE(lease->Submit(To(1), stream_)) << "8 bytes do not fit 4";
  ASSERT_TRUE(*lease) << "a refused lease stays";
  EXPECT_EQ(*lease->Submit(To(2), stream_), (CopyOutcome{Kind::kIssued, 8}));
  EXPECT_FALSE(*lease);
  EXPECT_EQ(Memory(2), (std::vector<int>{3, 4}));
  EXPECT_EQ(lease->Submit(To(2), stream_).error().code, ErrorCode::kFailedPrecondition);
}

TEST_F(PinnedStagerTest, ALeaseThroughAMirrorIsSkippedOrTrimmed) {
  auto mirror = stager_->NewMirror(To(3));
  ASSERT_TRUE(stager_->Copy(*mirror, std::vector<int>{1, 2, 3}, stream_));
  for (const int last : {3, 4}) {
    auto lease = stager_->Acquire(12);
    const std::array<int, 3> values = {1, 2, last};
    std::memcpy(lease->bytes().data(), values.data(), 12);
    auto outcome = lease->Submit(*mirror, stream_);
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->kind, last == 3 ? Kind::kSkipped : Kind::kTrimmed);
    EXPECT_EQ(Memory(3), (std::vector<int>{1, 2, last}));
  }
}

TEST_F(PinnedStagerTest, HeldLeasesCountAgainstTheLimitAndDroppedOnesDoNot) {
  std::vector<SlotLease> leases;
  for (int i = 0; i < 4; ++i) leases.push_back(std::move(*stager_->Acquire(64)));
  EXPECT_EQ(stager_->TryCopy(To(1), std::vector<int>{1}, stream_)->kind, Kind::kWouldBlock);
  EXPECT_FALSE(stager_->TryAcquire(64)->has_value());
  EXPECT_EQ(stager_->stats().would_block, 2u);
  leases.pop_back();
  EXPECT_EQ(stager_->TryCopy(To(1), std::vector<int>{1}, stream_)->kind, Kind::kIssued);
  EXPECT_EQ(stager_->Acquire(0).error().code, ErrorCode::kInvalidArgument);
}

TEST_F(PinnedStagerTest, ALeaseOutlivesItsStagerHarmlessly) {
  auto lease = stager_->Acquire(8);
  ASSERT_TRUE(lease);
  stager_.reset();
  std::memset(lease->bytes().data(), 1, 8);
  EXPECT_EQ(lease->Submit(To(2), stream_).error().code, ErrorCode::kFailedPrecondition);
}

TEST_F(PinnedStagerTest, NullDevicesAndBadOptionsAreRefused) {
  EXPECT_EQ(PinnedStager::Create(nullptr).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(PinnedStager::Create(device_, {.slot_bytes = 0}).error().code,
            ErrorCode::kInvalidArgument);
}

TEST_F(PinnedStagerTest, ABatchThatCannotBeMadeChangesNothing) {
  auto mirror = *stager_->NewMirror(To(4));
  const std::vector<int> two = {1, 2};
  const BatchCopy good = BatchCopy::To(Destination::Of(memory_.data() + 8, 2), two);
  const BatchCopy mirrored = BatchCopy::To(mirror, two);
  const auto refused = [&](std::vector<BatchCopy> copies, const char* part) {
    ExpectError(stager_->CopyBatch(copies, stream_), ErrorCode::kInvalidArgument, part);
  };
  refused({good, BatchCopy::To(Destination::Of(memory_.data(), 1), two)}, "Copy 1 of the batch");
  refused({mirrored, mirrored}, "one mirror twice");
  refused({good, BatchCopy::To(Destination::Of(memory_.data() + 9, 2), two)}, "the same bytes");
  refused(std::vector<BatchCopy>(PinnedStager::kMaxBatchCopies + 1, good), "larger than");
  auto other = *PinnedStager::Create(device_);
  auto foreign = *other->NewMirror(Destination::Of(memory_.data() + 16, 2));
  refused({good, BatchCopy::To(foreign, two)}, "another stager");
  EXPECT_EQ(memory_[8], 0);
  EXPECT_FALSE(*mirror.Matches(two));
  EXPECT_EQ(stager_->stats().errors, 5u);
}

TEST_F(PinnedStagerTest, AMirrorForgetsWhatABatchOverwroteWithoutIt) {
  auto mirror = *stager_->NewMirror(To(2));
  const std::vector<int> values = {1, 2};
  ASSERT_TRUE(stager_->Copy(mirror, values, stream_));
  const std::vector<int> other = {8};
  const BatchCopy overwrites = BatchCopy::To(Destination::Of(memory_.data() + 1, 1), other);
  ASSERT_TRUE(stager_->CopyBatch({&overwrites, 1}, stream_));
  EXPECT_FALSE(*mirror.Matches(values));
  ASSERT_TRUE(stager_->Copy(mirror, values, stream_));
  EXPECT_EQ(memory_[1], 2);
}

}  // namespace
}  // namespace h2d
