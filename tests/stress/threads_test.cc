// Operating-system threads share a stager and a mirror (I8). Nothing here can be replayed: the
// checks are the contents and, in its build, thread sanitizer. The deterministic tasks of
// tests/properties look at the interleavings one by one.
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <mutex>

#include "h2d/device/fake/fake_device.h"
#include "h2d/device/host/host_device.h"
#include "h2d/tests/stress/shared_stager.h"

namespace h2d::testing {
namespace {

constexpr int kRounds = 12;

TEST(Threads, ShareAStagerOnHostMemory) {
  const std::shared_ptr<HostDevice> device = HostDevice::Create();
  std::mutex mutex;
  std::deque<std::vector<uint32_t>> memory;
  StressDevice stress;
  stress.device = device;
  stress.new_stream = [&] { return device->NewStream(); };
  stress.allocate = [&](uint64_t count) {
    const std::lock_guard lock(mutex);
    return DevicePtr(memory.emplace_back(count).data());
  };
  stress.read = [](DevicePtr from, uint64_t count, const Stream&) {
    std::vector<uint32_t> values(count);
    std::memcpy(values.data(), from.pointer(), count * sizeof(uint32_t));
    return values;
  };
  EXPECT_EQ(RunSharedStager(stress, kRounds), "");
}

TEST(Threads, ShareAStagerOnTheSimulatedDevice) {
  FakeOptions options;
  options.choices = std::make_shared<HashChoices>(11);
  options.detect_hazards = false;  // to it all operating-system threads are one
  options.keep_trace = false;
  options.os_threads = true;
  const std::shared_ptr<FakeDevice> device = FakeDevice::Create(options);
  StressDevice stress;
  stress.device = device;
  stress.new_stream = [&] { return device->NewStream(); };
  stress.allocate = [&](uint64_t count) {
    return device->AllocateDevice(count * sizeof(uint32_t)).value_or(DevicePtr());
  };
  stress.read = [&](DevicePtr from, uint64_t count, const Stream& stream) {
    std::vector<uint32_t> values(count);
    const auto read = device->ReadBack(from, std::as_writable_bytes(std::span(values)), stream);
    return read ? values : std::vector<uint32_t>();
  };
  EXPECT_EQ(RunSharedStager(stress, kRounds), "");
}

}  // namespace
}  // namespace h2d::testing
