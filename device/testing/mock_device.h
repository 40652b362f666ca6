// A GoogleMock device, for tests whose promise is which calls are made and in which order.
//
// Every method does by default what the device that it delegates to does: at first a `HostDevice`
// of its own. So a test states only the calls that it is about:
//
//   auto mock = std::make_shared<testing::NiceMock<MockDevice>>();
//   testing::InSequence order;
//   EXPECT_CALL(*mock, CopyAsync);  // still copies
//   EXPECT_CALL(*mock,
//   Record).WillOnce(testing::Return(testing::ByMove(FailedPrecondition("No"))));
//
// `testing::NiceMock` is silent about calls without an expectation, `testing::StrictMock` fails on
// them. For faults by number rather than by expectation there is `FaultyDevice`.
#ifndef H2D_DEVICE_TESTING_MOCK_DEVICE_H_
#define H2D_DEVICE_TESTING_MOCK_DEVICE_H_

#include <gmock/gmock.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "h2d/device/device.h"
#include "h2d/device/host/host_device.h"

namespace h2d {

class MockDevice : public Device {
 public:
  // Delegates to a `HostDevice` of its own.
  MockDevice() : host_(HostDevice::Create()) { DelegateTo(host_); }

  // A stream that the `HostDevice` knows which it delegates to at first.
  Stream NewStream() const noexcept { return host_->NewStream(); }

  // From now on the default of every method is what `device` (not null) does with the call.
  void DelegateTo(std::shared_ptr<Device> device);

  MOCK_METHOD(Expected<PinnedBuffer>, AllocatePinned, (uint64_t bytes), (override));
  MOCK_METHOD(Expected<void>, Trim, (), (override));
  MOCK_METHOD(Expected<MemoryKind>, KindOf, (std::span<const std::byte> memory), (override));
  MOCK_METHOD(uint64_t, MemorySpace, (), (const, noexcept, override));
  MOCK_METHOD(Expected<void>, CopyAsync,
              (DevicePtr destination, std::span<const std::byte> source, const Stream& stream),
              (override));
  MOCK_METHOD(Expected<void>, CopyBatchAsync,
              (std::span<const CopyEntry> entries, const Stream& stream), (override));
  MOCK_METHOD(Expected<Event>, CreateEvent, (), (override));
  MOCK_METHOD(Expected<void>, Record, (Event & event, const Stream& stream), (override));
  MOCK_METHOD(Expected<EventState>, Query, (const Event& event), (override));
  MOCK_METHOD(Expected<std::optional<size_t>>, WaitAny,
              (std::span<const Event* const> events, const WaitBounds& bounds), (override));
  MOCK_METHOD(Expected<void>, WaitEvent, (const Stream& stream, const Event& event), (override));
  MOCK_METHOD(Expected<StreamStatus>, Inspect, (const Stream& stream), (override));
  MOCK_METHOD(std::chrono::nanoseconds, Now, (), (const, noexcept, override));
  MOCK_METHOD(void, OnHostAccess, (std::span<const std::byte> bytes, HostAccess access),
              (noexcept, override));

 private:
  const std::shared_ptr<HostDevice> host_;
};

inline void MockDevice::DelegateTo(std::shared_ptr<Device> device) {
  // Each default shares the device, and holds it as long as this object lives.
  const auto forward = [&device](auto method) {
    return [device, method](auto&&... arguments) {
      return ((*device).*method)(std::forward<decltype(arguments)>(arguments)...);
    };
  };
  ON_CALL(*this, AllocatePinned).WillByDefault(forward(&Device::AllocatePinned));
  ON_CALL(*this, Trim).WillByDefault(forward(&Device::Trim));
  ON_CALL(*this, KindOf).WillByDefault(forward(&Device::KindOf));
  ON_CALL(*this, MemorySpace).WillByDefault(forward(&Device::MemorySpace));
  ON_CALL(*this, CopyAsync).WillByDefault(forward(&Device::CopyAsync));
  ON_CALL(*this, CopyBatchAsync).WillByDefault(forward(&Device::CopyBatchAsync));
  ON_CALL(*this, CreateEvent).WillByDefault(forward(&Device::CreateEvent));
  ON_CALL(*this, Record).WillByDefault(forward(&Device::Record));
  ON_CALL(*this, Query).WillByDefault(forward(&Device::Query));
  ON_CALL(*this, WaitAny).WillByDefault(forward(&Device::WaitAny));
  ON_CALL(*this, WaitEvent).WillByDefault(forward(&Device::WaitEvent));
  ON_CALL(*this, Inspect).WillByDefault(forward(&Device::Inspect));
  ON_CALL(*this, Now).WillByDefault(forward(&Device::Now));
  ON_CALL(*this, OnHostAccess).WillByDefault(forward(&Device::OnHostAccess));
}

}  // namespace h2d

#endif  // H2D_DEVICE_TESTING_MOCK_DEVICE_H_
