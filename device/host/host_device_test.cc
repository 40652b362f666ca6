#include "h2d/device/host/host_device.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace h2d {
namespace {

using Bytes = std::array<std::byte, 64>;

Bytes Filled(int value) {
  Bytes bytes;
  bytes.fill(static_cast<std::byte>(value));
  return bytes;
}

template <class T>
void ExpectInvalid(const Expected<T>& result) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument) << result.error().ToString();
}

class HostDeviceTest : public testing::Test {
 protected:
  std::shared_ptr<HostDevice> device_ = HostDevice::Create();
  Stream stream_ = device_->NewStream();
  Bytes destination_ = Filled(0);
  DevicePtr there_{destination_.data()};
};

// --- Copies -------------------------------------------------------------------------------------

TEST_F(HostDeviceTest, ACopyIsCompleteWhenItReturns) {
  Bytes source = Filled(1);
  ASSERT_TRUE(device_->CopyAsync(there_, source, stream_));
  source = Filled(2);  // too late to be seen
  EXPECT_EQ(destination_, Filled(1));
}

TEST_F(HostDeviceTest, ACopyWritesItsRangeAndNothingBesides) {
  const Bytes source = Filled(1);
  ASSERT_TRUE(device_->CopyAsync(there_ + 8, std::span(source).first(16), stream_));
  for (size_t i = 0; i < destination_.size(); ++i) {
    EXPECT_EQ(destination_[i], std::byte{i >= 8 && i < 24}) << i;
  }
}

TEST_F(HostDeviceTest, ACopyOverItsOwnSourceMovesTheBytes) {
  for (size_t i = 0; i < destination_.size(); ++i) destination_[i] = static_cast<std::byte>(i);
  ASSERT_TRUE(device_->CopyAsync(there_ + 1, std::span(destination_).first(63), stream_));
  for (size_t i = 1; i < destination_.size(); ++i) {
    EXPECT_EQ(destination_[i], static_cast<std::byte>(i - 1));
  }
}

TEST_F(HostDeviceTest, ACopyOfNoBytesSucceedsAndDoesNothing) {
  EXPECT_TRUE(device_->CopyAsync(DevicePtr(), {}, stream_));
  EXPECT_TRUE(device_->CopyAsync(there_, {}, stream_));
  EXPECT_EQ(destination_, Filled(0));
}

TEST_F(HostDeviceTest, ARefusedCopyChangesNothingAndTheNextOneWorks) {
  const Bytes source = Filled(1);
  const Stream foreign = HostDevice::Create()->NewStream();
  ExpectInvalid(device_->CopyAsync(DevicePtr(), source, stream_));
  ExpectInvalid(device_->CopyAsync(there_, source, foreign));
  EXPECT_EQ(destination_, Filled(0));
  EXPECT_TRUE(device_->CopyAsync(there_, source, stream_));
  EXPECT_EQ(destination_, Filled(1));
}

TEST_F(HostDeviceTest, EveryEntryOfABatchIsCopied) {
  const Bytes source = Filled(1);
  const CopyEntry entries[] = {{there_, std::span(source).first(4)},
                               {there_ + 60, std::span(source).first(4)}};
  ASSERT_TRUE(device_->CopyBatchAsync(entries, stream_));
  for (size_t i = 0; i < destination_.size(); ++i) {
    EXPECT_EQ(destination_[i], std::byte{i < 4 || i >= 60}) << i;
  }
}

TEST_F(HostDeviceTest, ARefusedBatchCopiesNoneOfItsEntries) {
  const Bytes source = Filled(1);
  const CopyEntry good{there_, source};
  const CopyEntry with_an_empty_one[] = {good, {there_, {}}};
  const CopyEntry with_a_null_one[] = {good, {DevicePtr(), source}};
  const CopyEntry entries[] = {good};
  ExpectInvalid(device_->CopyBatchAsync({}, stream_));
  ExpectInvalid(device_->CopyBatchAsync(with_an_empty_one, stream_));
  ExpectInvalid(device_->CopyBatchAsync(with_a_null_one, stream_));
  ExpectInvalid(device_->CopyBatchAsync(entries, device_->LegacyStream()));
  EXPECT_EQ(destination_, Filled(0));
  EXPECT_TRUE(device_->CopyBatchAsync(entries, device_->PerThreadStream()));
  EXPECT_EQ(destination_, Filled(1));
}

TEST_F(HostDeviceTest, AllHostDevicesAddressTheSameMemory) {
  EXPECT_EQ(device_->MemorySpace(), HostDevice::Create()->MemorySpace());
}

// --- Events -------------------------------------------------------------------------------------

TEST_F(HostDeviceTest, AnEventIsCompleteBeforeAndAfterItsRecord) {
  Expected<Event> event = device_->CreateEvent();
  ASSERT_TRUE(event);
  EXPECT_EQ(device_->Query(*event), EventState::kComplete);
  ASSERT_TRUE(device_->Record(*event, stream_));
  EXPECT_EQ(device_->Query(*event), EventState::kComplete);
  EXPECT_TRUE(device_->WaitEvent(device_->NewStream(), *event));
}

TEST_F(HostDeviceTest, AnEventOfAnotherDeviceIsRefused) {
  Event foreign = *HostDevice::Create()->CreateEvent();
  const Event* const events[] = {&foreign};
  ExpectInvalid(device_->Record(foreign, stream_));
  ExpectInvalid(device_->Query(foreign));
  ExpectInvalid(device_->WaitEvent(stream_, foreign));
  ExpectInvalid(device_->WaitAny(events, {}));
}

TEST_F(HostDeviceTest, AMovedFromEventIsRefusedAndTheNewOwnerWorks) {
  Event event = *device_->CreateEvent();
  Event owner = std::move(event);
  ExpectInvalid(device_->Record(event, stream_));
  ExpectInvalid(device_->Query(event));
  EXPECT_TRUE(device_->Record(owner, stream_));
}

TEST_F(HostDeviceTest, WaitAnyAnswersTheFirstOfItsEventsWithoutWaiting) {
  const Event first = *device_->CreateEvent();
  const Event second = *device_->CreateEvent();
  const Event* const events[] = {&first, &second};
  const Expected<std::optional<size_t>> answer =
      device_->WaitAny(events, {.timeout = std::chrono::hours(24)});
  ASSERT_TRUE(answer);
  EXPECT_EQ(*answer, 0u);
}

TEST_F(HostDeviceTest, WaitAnyWithoutEventsLooksOnceWhenItHasNoTimeout) {
  for (const auto timeout : {std::chrono::nanoseconds(0), std::chrono::nanoseconds::min()}) {
    const Expected<std::optional<size_t>> answer = device_->WaitAny({}, {.timeout = timeout});
    ASSERT_TRUE(answer);
    EXPECT_EQ(*answer, std::nullopt);
  }
}

TEST_F(HostDeviceTest, WaitAnyWithoutEventsEndsAtItsTimeoutAndNotBefore) {
  const std::chrono::nanoseconds start = device_->Now();
  const std::chrono::milliseconds timeout(2);
  ASSERT_TRUE(device_->WaitAny({}, {.timeout = timeout}));
  EXPECT_GE(device_->Now() - start, timeout);
}

TEST_F(HostDeviceTest, WaitAnyDoesNotWaitWhenItsWakeupHasMovedOn) {
  Wakeup wakeup;
  const uint64_t seen = wakeup.Epoch();
  wakeup.Notify();
  const WaitBounds bounds{std::chrono::nanoseconds::max(), &wakeup, seen};
  const Expected<std::optional<size_t>> answer = device_->WaitAny({}, bounds);
  ASSERT_TRUE(answer);
  EXPECT_EQ(*answer, std::nullopt);
}

TEST_F(HostDeviceTest, AWakeupEndsAWaitThatHasNoOtherEnd) {
  Wakeup wakeup;
  const WaitBounds bounds{std::chrono::nanoseconds::max(), &wakeup, wakeup.Epoch()};
  std::thread waiter([&] { EXPECT_TRUE(device_->WaitAny({}, bounds)); });
  wakeup.Notify();
  waiter.join();
}

// --- Streams ------------------------------------------------------------------------------------

TEST_F(HostDeviceTest, StreamsHaveIdentitiesOfTheirOwnAndAreNeverCaptured) {
  const std::shared_ptr<HostDevice> other = HostDevice::Create();
  const std::pair<HostDevice*, Stream> streams[] = {{device_.get(), stream_},
                                                    {device_.get(), device_->NewStream()},
                                                    {device_.get(), device_->LegacyStream()},
                                                    {device_.get(), device_->PerThreadStream()},
                                                    {other.get(), other->NewStream()},
                                                    {other.get(), other->LegacyStream()},
                                                    {other.get(), other->PerThreadStream()}};
  std::set<StreamId> ids{0};
  for (const auto& [device, stream] : streams) {
    const Expected<StreamStatus> status = device->Inspect(stream);
    ASSERT_TRUE(status);
    EXPECT_FALSE(status->capturing);
    EXPECT_TRUE(ids.insert(status->id).second) << status->id;
    EXPECT_EQ(device->Inspect(stream)->id, status->id);
  }
}

TEST_F(HostDeviceTest, ThePerThreadStreamIsAnotherOneInEachThread) {
  const Stream stream = device_->PerThreadStream();
  StreamId there = 0;
  std::thread([&] { there = device_->Inspect(stream)->id; }).join();
  EXPECT_NE(device_->Inspect(stream)->id, there);
}

TEST_F(HostDeviceTest, AStreamOfAnotherDeviceIsRefused) {
  ExpectInvalid(device_->Inspect(HostDevice::Create()->NewStream()));
}

// --- Memory -------------------------------------------------------------------------------------

TEST_F(HostDeviceTest, PinnedMemoryIsWritableAlignedAndAsLargeAsAsked) {
  const PinnedBuffer buffer = *device_->AllocatePinned(1000);
  ASSERT_EQ(buffer.bytes().size(), 1000u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.bytes().data()) % PinnedBuffer::kAlignment, 0u);
  std::memset(buffer.bytes().data(), 1, buffer.bytes().size());
}

TEST_F(HostDeviceTest, PinnedMemoryOfNoBytesIsRefused) {
  ExpectInvalid(device_->AllocatePinned(0));
}

TEST_F(HostDeviceTest, KindOfKnowsPinnedMemoryByAnyPartOfIt) {
  const PinnedBuffer buffer = *device_->AllocatePinned(1000);
  const std::byte* const data = buffer.bytes().data();
  EXPECT_EQ(device_->KindOf(buffer.bytes()), MemoryKind::kPinned);
  EXPECT_EQ(device_->KindOf({data + 999, 1}), MemoryKind::kPinned);
  EXPECT_EQ(device_->KindOf({data + 999, 2}), MemoryKind::kPageable);
  EXPECT_EQ(device_->KindOf({data + 1000, 1}), MemoryKind::kPageable);
  EXPECT_EQ(device_->KindOf({data - 1, 2}), MemoryKind::kPageable);
  EXPECT_EQ(device_->KindOf(std::as_bytes(std::span(&buffer, 1))), MemoryKind::kPageable);
  EXPECT_EQ(device_->KindOf({data, 0}), MemoryKind::kPageable);
  EXPECT_EQ(device_->KindOf({}), MemoryKind::kPageable);
}

TEST_F(HostDeviceTest, ADyingBufferGivesItsMemoryToTheCacheAndTrimFreesIt) {
  const std::byte* data = device_->AllocatePinned(1000)->bytes().data();
  EXPECT_EQ(device_->KindOf({data, 1000}), MemoryKind::kPinned);
  EXPECT_EQ(device_->AllocatePinned(1000)->bytes().data(), data);
  ASSERT_TRUE(device_->Trim());
  EXPECT_EQ(device_->KindOf({data, 1000}), MemoryKind::kPageable);
}

TEST_F(HostDeviceTest, PinnedMemoryBeyondTheLimitIsRefusedUntilSomeIsGivenBack) {
  const std::shared_ptr<HostDevice> device = HostDevice::Create({.max_pinned_bytes = 1000});
  {
    const PinnedBuffer buffer = *device->AllocatePinned(600);
    const Expected<PinnedBuffer> beyond = device->AllocatePinned(500);
    ASSERT_FALSE(beyond);
    EXPECT_EQ(beyond.error().code, ErrorCode::kResourceExhausted);
  }
  EXPECT_TRUE(device->AllocatePinned(500));
}

// --- Lifetimes and threads ----------------------------------------------------------------------

TEST_F(HostDeviceTest, HandlesMayOutliveTheirDevice) {
  Event event = *device_->CreateEvent();
  const PinnedBuffer buffer = *device_->AllocatePinned(64);
  device_.reset();
  std::memset(buffer.bytes().data(), 1, buffer.bytes().size());
  EXPECT_NE(event.raw(), 0u);
}

TEST_F(HostDeviceTest, LeakedMemoryOutlivesTheDevice) {
  PinnedBuffer buffer = *device_->AllocatePinned(64);
  const std::span<std::byte> bytes = buffer.bytes();
  buffer.Leak();
  device_.reset();
  std::memset(bytes.data(), 1, bytes.size());
}

TEST_F(HostDeviceTest, ThreadsShareADevice) {
  const auto work = [&](int value) {
    Bytes destination = Filled(0);
    for (int round = 0; round < 200; ++round) {
      const PinnedBuffer buffer = *device_->AllocatePinned(sizeof(Bytes));
      std::memset(buffer.bytes().data(), value, buffer.bytes().size());
      Event event = *device_->CreateEvent();
      EXPECT_TRUE(device_->CopyAsync(DevicePtr(destination.data()), buffer.bytes(), stream_));
      EXPECT_TRUE(device_->Record(event, stream_));
      EXPECT_EQ(device_->Query(event), EventState::kComplete);
      EXPECT_EQ(device_->KindOf(buffer.bytes()), MemoryKind::kPinned);
      EXPECT_EQ(destination, Filled(value));
      EXPECT_TRUE(device_->Trim());
    }
  };
  std::vector<std::thread> threads;
  for (int value = 1; value <= 4; ++value) threads.emplace_back(work, value);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace h2d
