#include "h2d/device/fake/testing/hazard_check.h"

#include <gtest/gtest.h>

#include <cstdio>
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

// Run by the test below, in a process of its own.
TEST(HazardCheck, DISABLED_ATestWithARace) { PlantHazard(*WatchedFakeDevice()); }

TEST(HazardCheck, AWatchedDeviceFailsItsTestAtTheEndAndShowsTheTimeLine) {
  // Without the variables by which this process reports to Bazel.
  FILE* const other = popen(
      "env -u XML_OUTPUT_FILE -u TEST_PREMATURE_EXIT_FILE -u TESTBRIDGE_TEST_ONLY -u GTEST_OUTPUT "
      "\"$(readlink /proc/$PPID/exe)\" --gtest_also_run_disabled_tests "
      "--gtest_filter=HazardCheck.DISABLED_ATestWithARace 2>&1",
      "r");
  ASSERT_NE(other, nullptr);
  std::string output;
  char part[512];
  while (std::fgets(part, sizeof part, other) != nullptr) output += part;
  EXPECT_NE(pclose(other), 0) << output;
  for (const char* words : {"saw 1 hazard(s)", "0 = host, 1 = copies", "HAZARD: no edge: host has",
                            "[  FAILED  ] HazardCheck.DISABLED_ATestWithARace"}) {
    EXPECT_NE(output.find(words), std::string::npos) << words << " is missing in\n" << output;
  }
}

}  // namespace
}  // namespace h2d::testing
