#include "h2d/examples/replay/host_machine.h"

#include <cstring>
#include <vector>

#include "h2d/device/host/host_device.h"
#include "h2d/stager/step_layout.h"

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

  Expected<void> LaunchGraph(const Stream&, const StepGraph& graph, std::span<std::byte> snapshot,
                             std::chrono::nanoseconds) override {
    for (const Destination& read : graph.reads) {
      const uint64_t bytes = read.count * read.element_bytes;
      std::memcpy(snapshot.data(), read.ptr.pointer(), bytes);
      snapshot = snapshot.subspan(bytes);
    }
    if (const std::optional<Destination>& place = graph.clears) {
      std::memset(place->ptr.pointer(), 0, place->count * place->element_bytes);
    }
    return {};
  }

 private:
  // Zeroed, and aligned for a slab.
  struct alignas(StepLayout::kMaxAlignment) Unit {
    std::byte bytes[StepLayout::kMaxAlignment];
  };

  std::byte* Allocate(uint64_t bytes) {
    memory_.emplace_back(bytes / sizeof(Unit) + 1);
    return memory_.back().data()->bytes;
  }

  std::shared_ptr<HostDevice> host_;
  std::shared_ptr<Device> device_;
  std::vector<std::vector<Unit>> memory_;
};

}  // namespace

std::unique_ptr<Machine> NewHostMachine() { return std::make_unique<HostMachine>(); }

}  // namespace h2d::replay
