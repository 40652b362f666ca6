#include <utility>
#include <vector>

#include "h2d/device/cuda/cuda_device.h"
#include "h2d/device/cuda/engine/cuda_memory.h"
#include "h2d/device/cuda/engine/cuda_stream.h"
#include "h2d/examples/load_file/target_device.h"

namespace h2d::load_file {
namespace {

class CudaTarget final : public TargetDevice {
 public:
  CudaTarget(std::shared_ptr<CudaDevice> device, CudaStream stream)
      : cuda_(std::move(device)), shared_(cuda_), stream_(std::move(stream)) {}

  std::string_view name() const override { return "CUDA device 0"; }
  const std::shared_ptr<Device>& device() override { return shared_; }
  const Stream& stream() override { return stream_.get(); }
  Expected<DevicePtr> Allocate(uint64_t bytes) override {
    auto memory = CudaMemory::Allocate(*cuda_, bytes);
    if (!memory) return ErrorOf(memory);
    memory_.push_back(std::move(*memory));
    return memory_.back().ptr();
  }
  Expected<void> Synchronize() override { return h2d::Synchronize(*cuda_, stream_.get()); }
  Expected<void> ReadBack(DevicePtr from, std::span<std::byte> into) override {
    if (auto copied = CopyToHostAsync(*cuda_, into, from, stream_.get()); !copied) return copied;
    return Synchronize();
  }

 private:
  const std::shared_ptr<CudaDevice> cuda_;
  const std::shared_ptr<Device> shared_;
  const CudaStream stream_;
  std::vector<CudaMemory> memory_;
};

}  // namespace

Expected<std::unique_ptr<TargetDevice>> NewCudaTarget() {
  auto device = CudaDevice::Create(0);
  if (!device) return ErrorOf(device);
  auto stream = CudaStream::Create(**device);
  if (!stream) return ErrorOf(stream);
  return std::make_unique<CudaTarget>(std::move(*device), std::move(*stream));
}

}  // namespace h2d::load_file
