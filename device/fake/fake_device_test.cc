// The simulated device as a device: what copies, events and streams do, and when.
#include "h2d/device/fake/fake_device.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

namespace h2d {
namespace {

std::vector<std::byte> BytesOf(int value, size_t size) {
  return std::vector<std::byte>(size, static_cast<std::byte>(value));
}

class FakeDeviceTest : public testing::Test {
 protected:
  // Announces and writes.
  void Fill(const PinnedBuffer& buffer, int value) {
    device_->OnHostAccess(buffer.bytes(), HostAccess::kWrite);
    std::memset(buffer.bytes().data(), value, buffer.bytes().size());
  }
  std::vector<std::byte> At(DevicePtr ptr, size_t size) {
    std::vector<std::byte> bytes(size);
    EXPECT_TRUE(device_->Peek(ptr, bytes));
    return bytes;
  }
  void ExpectNoHazard() { EXPECT_EQ(device_->hazard_count(), 0U) << device_->Timeline(); }

  std::shared_ptr<FakeDevice> device_ = FakeDevice::Create();
  Stream stream_ = device_->NewStream("copies");
  DevicePtr target_ = *device_->AllocateDevice(256, "target");
  PinnedBuffer slot_ = *device_->AllocatePinned(64);
};

TEST_F(FakeDeviceTest, ACopyArrivesWhenItsLatencyHasPassedAndNotBefore) {
  Fill(slot_, 7);
  ASSERT_TRUE(device_->CopyAsync(target_, slot_.bytes(), stream_));
  EXPECT_EQ(At(target_, 64), BytesOf(0, 64));
  device_->AdvanceTime(std::chrono::microseconds(5));
  EXPECT_EQ(At(target_, 64), BytesOf(0, 64));
  device_->AdvanceTime(std::chrono::microseconds(2));
  EXPECT_EQ(At(target_, 64), BytesOf(7, 64));
  EXPECT_EQ(At(target_ + 64, 64), BytesOf(0, 64));
  ExpectNoHazard();
}

}  // namespace
}  // namespace h2d
