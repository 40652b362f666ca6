#include "h2d/examples/replay/host_machine.h"

#include <cstring>
#include <vector>

#include "h2d/device/host/host_device.h"

namespace h2d::replay {
namespace {

class HostMachine final : public Machine {
 public:
  HostMachine() : host_(HostDevice::Create()), device_(host_) {}

  std::string_view name() const override { return "host memory"; }
  const std::shared_ptr<Device>& device() override { return device_; }

  Expected<DevicePtr> AllocateDevice(uint64_t bytes, std::string_view) override {
    return DevicePtr(Allocate(bytes));
  }
  Expected<std::span<std::byte>> AllocateSnapshot(uint64_t bytes) override {
    return std::span<std::byte>(Allocate(bytes), bytes);
  }
  Expected<Stream> NewStream(std::string_view) override { return host_->NewStream(); }

  Expected<void> LaunchGraph(const Stream&, std::span<const Destination> reads,
                             std::span<std::byte> snapshot, std::chrono::nanoseconds) override {
    for (const Destination& read : reads) {
      const uint64_t bytes = read.count * read.element_bytes;
      std::memcpy(snapshot.data(), read.ptr.pointer(), bytes);
      snapshot = snapshot.subspan(bytes);
    }
    return {};
  }

 private:
  // Zeroed, and aligned for every element.
  std::byte* Allocate(uint64_t bytes) {
    memory_.push_back(std::make_unique<std::byte[]>(bytes));
    return memory_.back().get();
  }

  std::shared_ptr<HostDevice> host_;
  std::shared_ptr<Device> device_;
  std::vector<std::unique_ptr<std::byte[]>> memory_;
};

}  // namespace

std::unique_ptr<Machine> NewHostMachine() { return std::make_unique<HostMachine>(); }

}  // namespace h2d::replay
