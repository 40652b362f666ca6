#include "h2d/device/cuda/engine/cuda_memory.h"

#include <cuda_runtime_api.h>

#include <string>

#include "h2d/device/cuda/engine/on_device.h"

namespace h2d {

Expected<CudaMemory> CudaMemory::Allocate(const CudaDevice& device, uint64_t bytes) {
  if (bytes == 0) return InvalidArgument("An allocation of device memory needs at least one byte.");
  void* memory = nullptr;
  Expected<void> ok = internal::BesideCaptures(
      *device.state(), "Allocating " + std::to_string(bytes) + " bytes of device memory",
      [&] { return cudaMalloc(&memory, bytes); });
  if (!ok) return ErrorOf(ok);
  return CudaMemory(memory, bytes, Free{device.state()});
}

void CudaMemory::Free::operator()(void* memory) const noexcept {
  static_cast<void>(
      internal::BesideCaptures(*state, "Freeing device memory", [&] { return cudaFree(memory); }));
}

Expected<void> CopyToHostAsync(const CudaDevice& device, std::span<std::byte> to, DevicePtr from,
                               const Stream& stream) {
  return internal::OnDevice(
      *device.state(), "Copying " + std::to_string(to.size()) + " bytes to the host", [&] {
        return cudaMemcpyAsync(to.data(), from.pointer(), to.size(), cudaMemcpyDeviceToHost,
                               CudaDevice::Native(stream));
      });
}

Expected<void> FillAsync(const CudaDevice& device, DevicePtr ptr, std::byte value, uint64_t bytes,
                         const Stream& stream) {
  return internal::OnDevice(*device.state(),
                            "Filling " + std::to_string(bytes) + " bytes of device memory", [&] {
                              return cudaMemsetAsync(ptr.pointer(), static_cast<int>(value), bytes,
                                                     CudaDevice::Native(stream));
                            });
}

}  // namespace h2d
