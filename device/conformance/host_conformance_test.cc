// The suite on plain host memory.
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "h2d/device/conformance/run.h"
#include "h2d/device/host/host_device.h"

namespace h2d::conformance {
namespace {

Unexpected NotOnHost() { return FailedPrecondition("The host device cannot do this."); }

class HostHarness final : public Harness {
 public:
  explicit HostHarness(bool is_first) {
    if (is_first) second_ = std::make_unique<HostHarness>(false);
  }

  std::shared_ptr<Device> device() override { return device_; }

  Expected<DevicePtr> AllocateDevice(uint64_t bytes) override {
    // Excluded tests run all the same, and one of them copies past the end: into spare bytes.
    constexpr uint64_t kSpareBytes = 4096;
    memory_.push_back(std::vector<std::byte>(bytes + kSpareBytes));
    return DevicePtr(memory_.back().data());
  }
  Expected<std::vector<std::byte>> ReadBack(DevicePtr ptr, uint64_t bytes, const Stream&) override {
    const auto* const data = static_cast<const std::byte*>(ptr.pointer());
    return std::vector<std::byte>(data, data + bytes);
  }
  Expected<void> Fill(DevicePtr ptr, std::byte value, uint64_t bytes, const Stream&) override {
    std::memset(ptr.pointer(), static_cast<int>(value), bytes);
    return {};
  }

  Expected<Stream> NewStream(StreamFlavor) override { return device_->NewStream(); }
  Expected<void> DestroyStream(const Stream&) override { return {}; }
  Stream LegacyStream() override { return device_->LegacyStream(); }
  Stream PerThreadStream() override { return device_->PerThreadStream(); }
  Expected<void> Hold(const Stream&) override { return NotOnHost(); }
  Expected<void> Release(const Stream&) override { return NotOnHost(); }
  Expected<void> Synchronize(const Stream&) override { return {}; }
  void Quiesce() override {}

  Expected<void> BeginCapture(const Stream&, CaptureMode) override { return NotOnHost(); }
  Expected<void> InvalidateCapture(const Stream&) override { return NotOnHost(); }
  Expected<std::unique_ptr<Graph>> EndCapture(const Stream&) override { return NotOnHost(); }
  Expected<void> Replay(Graph&, const Stream&) override { return NotOnHost(); }

  Harness* Second() override { return second_.get(); }

 private:
  const std::shared_ptr<HostDevice> device_ = HostDevice::Create();
  std::deque<std::vector<std::byte>> memory_;
  std::unique_ptr<HostHarness> second_;
};

}  // namespace
}  // namespace h2d::conformance

int main(int argc, char** argv) {
  using h2d::conformance::Exclusion;
  const std::string no_hold = "Every copy is done when its call returns, so no stream can be held.";
  const std::string no_graphs = "There are no graphs, so no stream is ever captured.";
  const std::string no_bounds = "Device memory is host memory, whose extents nobody knows.";
  const std::vector<Exclusion> exclusions = {
      {"HeldStreams.*", no_hold},
      {"HeldEvents.*", no_hold},
      {"HeldBatch.*", no_hold},
      {"HeldStager.*", no_hold},
      {"HeldUploader.*", no_hold},
      {"Capture.*", no_graphs},
      {"StagerCapture.*", no_graphs},
      {"UploaderCapture.*", no_graphs},
      {"AnUploader.RefusesDeviceMemoryAsASource", no_bounds},
      {"DeviceMemory.*", no_bounds},
      {"TwoDevices.PinnedMemoryOfOneServesBoth",
       "A device knows only memory that it pinned itself."},
      {"TwoDevices.AHeldDeviceHoldsNotTheOther", no_hold},
  };
  return h2d::conformance::RunConformance(
      argc, argv,
      {.name = "host",
       .make_harness = []() -> h2d::Expected<std::unique_ptr<h2d::conformance::Harness>> {
         return std::make_unique<h2d::conformance::HostHarness>(true);
       },
       .exclusions = exclusions});
}
