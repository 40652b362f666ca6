// The fixture of the fake's own tests: a device, two streams, device memory, a pinned slot.
#ifndef H2D_DEVICE_FAKE_TESTING_FAKE_FIXTURE_H_
#define H2D_DEVICE_FAKE_TESTING_FAKE_FIXTURE_H_

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "h2d/device/fake/fake_device.h"

namespace h2d::testing {

inline std::vector<std::byte> BytesOf(int value, size_t size) {
  return std::vector<std::byte>(size, static_cast<std::byte>(value));
}

class FakeFixture : public ::testing::Test {
 protected:
  static constexpr size_t kBytes = 64;

  // Many of these tests store into sources in flight on purpose.
  static FakeOptions Unpoisoned() {
    FakeOptions options;
    options.poison_sources = false;
    return options;
  }

  // Starts over with other options.
  void Reset(FakeOptions options) {
    device_ = FakeDevice::Create(std::move(options));
    a_ = device_->NewStream("a");
    b_ = device_->NewStream("b");
    target_ = *device_->AllocateDevice(4 * kBytes, "target");
    slot_ = *device_->AllocatePinned(kBytes);
  }
  // The same with the answers of `script`, for operations told by `BeginOperation`.
  void ResetWith(std::map<ChoicePoint, uint32_t> script) {
    FakeOptions options = Unpoisoned();
    options.choices = std::make_shared<ScriptedChoices>(std::move(script));
    Reset(std::move(options));
  }

  void Fill(const PinnedBuffer& buffer, int value) {
    device_->OnHostAccess(buffer.bytes(), HostAccess::kWrite);
    FillUnannounced(buffer, value);
  }
  static void FillUnannounced(const PinnedBuffer& buffer, int value) {
    std::memset(buffer.bytes().data(), value, buffer.bytes().size());
  }
  std::vector<std::byte> At(DevicePtr ptr, size_t size = kBytes) {
    std::vector<std::byte> bytes(size);
    EXPECT_TRUE(device_->Peek(ptr, bytes));
    return bytes;
  }
  Event RecordOn(const Stream& stream) {
    Event event = *device_->CreateEvent();
    EXPECT_TRUE(device_->Record(event, stream));
    return event;
  }
  EventState StateOf(const Event& event) { return *device_->Query(event); }
  Expected<void> Copy(const Stream& stream, DevicePtr to, const PinnedBuffer& from) {
    return device_->CopyAsync(to, from.bytes(), stream);
  }

  void ExpectNoHazard() { EXPECT_EQ(device_->hazard_count(), 0U) << device_->Timeline(); }
  // Exactly one hazard, of this kind; cleared.
  Hazard TheHazard(HazardKind kind) {
    const std::vector<Hazard> hazards = device_->hazards();
    EXPECT_EQ(hazards.size(), 1U) << device_->Timeline();
    if (hazards.empty()) return {};
    EXPECT_EQ(hazards.front().kind, kind) << hazards.front().ToString();
    device_->ClearHazards();
    return hazards.front();
  }

  std::shared_ptr<FakeDevice> device_ = FakeDevice::Create(Unpoisoned());
  Stream a_ = device_->NewStream("a");
  Stream b_ = device_->NewStream("b");
  DevicePtr target_ = *device_->AllocateDevice(4 * kBytes, "target");
  PinnedBuffer slot_ = *device_->AllocatePinned(kBytes);
};

}  // namespace h2d::testing

#endif  // H2D_DEVICE_FAKE_TESTING_FAKE_FIXTURE_H_
