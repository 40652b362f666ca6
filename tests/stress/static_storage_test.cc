// A stager, a mirror and a lease with static storage duration: the process ends with a copy in
// flight, after main, in whatever order static objects die, and it ends quietly (I9). This is a
// process of its own because its end is the test: a crash or a hang there fails it.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "h2d/device/fake/fake_device.h"
#include "h2d/stager/pinned_stager.h"

namespace h2d {
namespace {

// Destroyed last to first: the device's own handle goes before the stager that still needs it.
std::optional<SlotLease> lease_of_process;
std::optional<H2DMirror> mirror_of_process;
std::unique_ptr<PinnedStager> stager_of_process;
std::shared_ptr<FakeDevice> device_of_process;

TEST(StaticStorage, AStagerMayOutliveMainWithACopyInFlight) {
  device_of_process = FakeDevice::Create();
  const Stream stream = device_of_process->NewStream();
  const auto memory = device_of_process->AllocateDevice(64);
  ASSERT_TRUE(memory);
  auto stager = PinnedStager::Create(device_of_process);
  ASSERT_TRUE(stager);
  stager_of_process = std::move(*stager);
  auto mirror = stager_of_process->NewMirror(Destination::Of<int32_t>(*memory, 4));
  ASSERT_TRUE(mirror);
  mirror_of_process.emplace(std::move(*mirror));
  auto lease = stager_of_process->Acquire(16);
  ASSERT_TRUE(lease);
  lease_of_process.emplace(std::move(*lease));

  const auto copy = stager_of_process->Copy(*mirror_of_process, std::vector{1, 2, 3, 4}, stream);
  ASSERT_TRUE(copy);
  EXPECT_EQ(stager_of_process->stats().slots_in_use, 2U);
}

}  // namespace
}  // namespace h2d
