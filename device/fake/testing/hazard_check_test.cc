#include "h2d/device/fake/testing/hazard_check.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <string>

namespace h2d::testing {
namespace {

// A slot that is written again while its copy may still read it.
void PlantHazard(FakeDevice& device) {
  const Stream stream = device.NewStream("copies");
  const DevicePtr target = *device.AllocateDevice(64, "token ids");
  const PinnedBuffer slot = *device.AllocatePinned(64);
  ASSERT_TRUE(device.CopyAsync(target, slot.bytes(), stream));
  device.OnHostAccess(slot.bytes(), HostAccess::kWrite);
  ASSERT_TRUE(device.SynchronizeStream(stream));
}

TEST(HazardCheck, AFailureShowsBothAccessesAndTheTimeLine) {
  const std::shared_ptr<FakeDevice> device = FakeDevice::Create();
  EXPECT_TRUE(NoHazards(*device));
  PlantHazard(*device);
  const ::testing::AssertionResult result = NoHazards(*device);
  EXPECT_FALSE(result);
  const std::string message = result.message();
  EXPECT_NE(message.find("write to the source of a copy in flight"), std::string::npos) << message;
  EXPECT_NE(message.find("copies"), std::string::npos) << message;
  EXPECT_NE(message.find("to token ids + 0"), std::string::npos) << message;
  EXPECT_NE(message.find("host write"), std::string::npos) << message;
}

TEST(HazardCheck, AWatchedDeviceWithoutHazardsLetsItsTestPass) {
  const std::shared_ptr<FakeDevice> device = WatchedFakeDevice();
  const Stream stream = device->NewStream();
  EXPECT_TRUE(device->SynchronizeStream(stream));
}

TEST(HazardCheck, AWatchedDeviceFailsItsTestAtTheEnd) {
  const std::shared_ptr<FakeDevice> device = FakeDevice::Create();
  PlantHazard(*device);
  // What the listener does at a test's end, without failing this one.
  EXPECT_NONFATAL_FAILURE(EXPECT_TRUE(NoHazards(*device)), "hazard");
}

}  // namespace
}  // namespace h2d::testing
