#include "h2d/device/testing/mock_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace h2d {
namespace {

using testing::_;
using testing::ByMove;
using testing::InSequence;
using testing::NiceMock;
using testing::Return;

// What a stager does for one copy: fill a slot, copy it, record its event.
Expected<void> StageOneByte(Device& device, DevicePtr destination, const Stream& stream) {
  Expected<PinnedBuffer> slot = device.AllocatePinned(1);
  if (!slot) return ErrorOf(slot);
  Expected<Event> event = device.CreateEvent();
  if (!event) return ErrorOf(event);
  device.OnHostAccess(slot->bytes(), HostAccess::kWrite);
  slot->bytes()[0] = std::byte{7};
  if (Expected<void> copy = device.CopyAsync(destination, slot->bytes(), stream); !copy) {
    return copy;
  }
  return device.Record(*event, stream);
}

TEST(MockDevice, CallsAreExpectedInOrderAndStillDone) {
  NiceMock<MockDevice> mock;
  std::byte destination{0};
  {
    const InSequence order;
    EXPECT_CALL(mock, OnHostAccess(_, HostAccess::kWrite));
    EXPECT_CALL(mock, CopyAsync(DevicePtr(&destination), _, _));
    EXPECT_CALL(mock, Record);
  }
  EXPECT_TRUE(StageOneByte(mock, DevicePtr(&destination), mock.NewStream()));
  EXPECT_EQ(destination, std::byte{7});
}

TEST(MockDevice, AnExpectedErrorReplacesTheCall) {
  NiceMock<MockDevice> mock;
  std::byte destination{0};
  EXPECT_CALL(mock, CopyAsync)
      .WillOnce(Return(ByMove(Expected<void>(MakeError(ErrorCode::kDevice, "Lost.", 700)))));
  EXPECT_CALL(mock, Record).Times(0);
  const Expected<void> staged = StageOneByte(mock, DevicePtr(&destination), mock.NewStream());
  ASSERT_FALSE(staged);
  EXPECT_EQ(staged.error().device_code, 700);
  EXPECT_EQ(destination, std::byte{0});
}

TEST(MockDevice, AMoveOnlyAnswerIsHandedOverOnce) {
  NiceMock<MockDevice> mock;
  const std::shared_ptr<HostDevice> other = HostDevice::Create();
  Expected<Event> event = other->CreateEvent();
  const HandleOwner* const owner = event->owner();
  EXPECT_CALL(mock, CreateEvent).WillOnce(Return(ByMove(std::move(event))));
  EXPECT_EQ(mock.CreateEvent()->owner(), owner);
}

TEST(MockDevice, EveryMethodDelegatesByDefault) {
  NiceMock<MockDevice> mock;
  NiceMock<MockDevice>* const inner = new NiceMock<MockDevice>;
  mock.DelegateTo(std::shared_ptr<Device>(inner));
  const Stream stream = inner->NewStream();
  const std::byte source{7};
  std::byte destination{0};
  Event event = *inner->CreateEvent();
  const Event* const events[] = {&event};
  const CopyEntry entries[] = {{DevicePtr(&destination), {&source, 1}}};

  EXPECT_CALL(*inner, AllocatePinned(1));
  EXPECT_CALL(*inner, Trim());
  EXPECT_CALL(*inner, KindOf);
  EXPECT_CALL(*inner, MemorySpace());
  EXPECT_CALL(*inner, CopyAsync);
  EXPECT_CALL(*inner, CopyBatchAsync);
  EXPECT_CALL(*inner, CreateEvent());
  EXPECT_CALL(*inner, Record);
  EXPECT_CALL(*inner, Query);
  EXPECT_CALL(*inner, WaitAny);
  EXPECT_CALL(*inner, WaitEvent);
  EXPECT_CALL(*inner, Inspect);
  EXPECT_CALL(*inner, Now());
  EXPECT_CALL(*inner, OnHostAccess);
  EXPECT_TRUE(mock.AllocatePinned(1));
  EXPECT_TRUE(mock.Trim());
  EXPECT_TRUE(mock.KindOf({&source, 1}));
  EXPECT_EQ(mock.MemorySpace(), HostDevice::Create()->MemorySpace());
  EXPECT_TRUE(mock.CopyAsync(DevicePtr(&destination), {&source, 1}, stream));
  EXPECT_TRUE(mock.CopyBatchAsync(entries, stream));
  EXPECT_TRUE(mock.CreateEvent());
  EXPECT_TRUE(mock.Record(event, stream));
  EXPECT_EQ(mock.Query(event), EventState::kComplete);
  EXPECT_EQ(*mock.WaitAny(events, {}), 0u);
  EXPECT_TRUE(mock.WaitEvent(stream, event));
  EXPECT_EQ(mock.Inspect(stream)->id, stream.id());
  EXPECT_GT(mock.Now().count(), 0);
  mock.OnHostAccess({&source, 1}, HostAccess::kRead);
}

}  // namespace
}  // namespace h2d
