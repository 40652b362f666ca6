#include "h2d/examples/load_file/target_device.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "h2d/device/fake/fake_device.h"
#include "h2d/device/host/host_device.h"

namespace h2d::load_file {
namespace {

class FakeTarget final : public TargetDevice {
 public:
  std::string_view name() const override { return "simulated device (virtual time)"; }
  const std::shared_ptr<Device>& device() override { return shared_; }
  const Stream& stream() override { return stream_; }
  Expected<DevicePtr> Allocate(uint64_t bytes) override { return fake_->AllocateDevice(bytes); }
  Expected<void> Synchronize() override { return fake_->SynchronizeStream(stream_); }
  Expected<void> ReadBack(DevicePtr from, std::span<std::byte> into) override {
    return fake_->ReadBack(from, into, stream_);
  }
  uint64_t hazards() const override { return fake_->hazard_count(); }

 private:
  static FakeOptions Options() {
    FakeOptions options;
    options.device_limit_bytes = std::numeric_limits<uint64_t>::max();
    return options;
  }

  const std::shared_ptr<FakeDevice> fake_ = FakeDevice::Create(Options());
  const std::shared_ptr<Device> shared_ = fake_;
  const Stream stream_ = fake_->NewStream("loader");
};

class HostTarget final : public TargetDevice {
 public:
  std::string_view name() const override { return "host memory"; }
  const std::shared_ptr<Device>& device() override { return shared_; }
  const Stream& stream() override { return stream_; }
  Expected<DevicePtr> Allocate(uint64_t bytes) override {
    memory_.emplace_back(bytes);
    return DevicePtr(memory_.back().data());
  }
  Expected<void> Synchronize() override { return {}; }
  Expected<void> ReadBack(DevicePtr from, std::span<std::byte> into) override {
    std::memcpy(into.data(), from.pointer(), into.size());
    return {};
  }

 private:
  const std::shared_ptr<HostDevice> host_ = HostDevice::Create();
  const std::shared_ptr<Device> shared_ = host_;
  const Stream stream_ = host_->NewStream();
  std::vector<std::vector<std::byte>> memory_;
};

}  // namespace

Expected<std::unique_ptr<TargetDevice>> NewTargetDevice(std::string_view name) {
  if (name == "fake") return std::make_unique<FakeTarget>();
  if (name == "host") return std::make_unique<HostTarget>();
  if (name == "cuda") return NewCudaTarget();
  return InvalidArgument("There is no device '" + std::string(name) +
                         "'; there are fake, host and cuda.");
}

}  // namespace h2d::load_file
