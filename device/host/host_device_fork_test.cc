// In a forked child calls fail and destructors do nothing (I9). The child answers with its exit
// status: the number of the first check that failed, or 0.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <optional>

#include "h2d/device/host/host_device.h"
#include "h2d/device/testing/child_process.h"

namespace h2d {
namespace {

using testing::IsRefused;
using testing::StatusOfChild;

TEST(HostDeviceFork, EveryCallOfAnInheritedDeviceFailsInTheChild) {
  const std::shared_ptr<HostDevice> device = HostDevice::Create();
  const Stream stream = device->NewStream();
  Event event = *device->CreateEvent();
  std::byte source{1}, destination{0};
  const DevicePtr there(&destination);
  const CopyEntry entries[] = {{there, {&source, 1}}};
  const Event* const events[] = {&event};

  const int status = StatusOfChild([&] {
    if (!IsRefused(device->AllocatePinned(64))) return 1;
    if (!IsRefused(device->Trim())) return 2;
    if (!IsRefused(device->KindOf({&source, 1}))) return 3;
    if (!IsRefused(device->CopyAsync(there, {&source, 1}, stream))) return 4;
    if (!IsRefused(device->CopyBatchAsync(entries, stream))) return 5;
    if (!IsRefused(device->CreateEvent())) return 6;
    if (!IsRefused(device->Record(event, stream))) return 7;
    if (!IsRefused(device->Query(event))) return 8;
    if (!IsRefused(device->WaitAny(events, {}))) return 9;
    if (!IsRefused(device->WaitAny({}, {.timeout = std::chrono::hours(24)}))) return 10;
    if (!IsRefused(device->WaitEvent(stream, event))) return 11;
    if (!IsRefused(device->Inspect(stream))) return 12;
    return destination == std::byte{0} ? 0 : 13;
  });
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(device->CopyAsync(there, {&source, 1}, stream)) << "the parent goes on";
}

TEST(HostDeviceFork, DestructorsDoNothingInTheChild) {
  std::shared_ptr<HostDevice> device = HostDevice::Create();
  std::optional<Event> event = *device->CreateEvent();
  std::optional<PinnedBuffer> used = *device->AllocatePinned(64);
  const std::byte* const idle = device->AllocatePinned(96)->bytes().data();
  std::memset(used->bytes().data(), 7, 64);
  std::memset(const_cast<std::byte*>(idle), 7, 96);

  // A heap that got the memory back would have written its own pointers there.
  const int status = StatusOfChild([&] {
    const std::byte* const kept = used->bytes().data();
    event.reset();
    used.reset();
    device.reset();
    for (size_t i = 0; i < 64; ++i) {
      if (kept[i] != std::byte{7}) return 1;
    }
    for (size_t i = 0; i < 96; ++i) {
      if (idle[i] != std::byte{7}) return 2;
    }
    return 0;
  });
  EXPECT_EQ(status, 0);
}

TEST(HostDeviceFork, ADeviceMadeInTheChildWorksThere) {
  const int status = StatusOfChild([] {
    const std::shared_ptr<HostDevice> device = HostDevice::Create();
    const std::byte source{1};
    std::byte destination{0};
    if (!device->CopyAsync(DevicePtr(&destination), {&source, 1}, device->NewStream())) return 1;
    return destination == std::byte{1} ? 0 : 2;
  });
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace h2d
