// Device memory of a CUDA device.
//
//   auto memory = h2d::CudaMemory::Allocate(*device, 4096);
//   auto copied = device->CopyAsync(memory->ptr(), bytes, stream->get());
//   auto filled = h2d::FillAsync(*device, memory->ptr(), std::byte{0}, 4096, stream->get());
//   auto read = h2d::CopyToHostAsync(*device, pinned.bytes(), memory->ptr(), stream->get());
//
// Writing it is what `CudaDevice::CopyAsync` does. This package holds the little that this
// project's examples and tests do on a GPU beside the library, so that none of them includes a CUDA
// header; an engine has its own.
#ifndef H2D_DEVICE_CUDA_ENGINE_CUDA_MEMORY_H_
#define H2D_DEVICE_CUDA_ENGINE_CUDA_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "h2d/device/cuda/cuda_device.h"
#include "h2d/device/device_ptr.h"
#include "h2d/device/error.h"
#include "h2d/device/stream.h"

namespace h2d {

// Owns device memory; move-only. Its release may wait for everything on the device. It may outlive
// its `CudaDevice`; in a forked child and at exit it is quiet.
class CudaMemory {
 public:
  // `bytes` bytes, whose content is arbitrary, at a multiple of 256. May wait for the device.
  // Leaves captures alone. Errors: `bytes` is 0; the device has no more.
  [[nodiscard]] static Expected<CudaMemory> Allocate(const CudaDevice& device, uint64_t bytes);

  // Null and 0 after a move.
  DevicePtr ptr() const noexcept { return DevicePtr(memory_.get()); }
  uint64_t bytes() const noexcept { return memory_ == nullptr ? 0 : bytes_; }

 private:
  struct Free {
    std::shared_ptr<internal::CudaState> state;
    void operator()(void* memory) const noexcept;
  };

  CudaMemory(void* memory, uint64_t bytes, Free free) noexcept
      : memory_(memory, std::move(free)), bytes_(bytes) {}

  std::unique_ptr<void, Free> memory_;
  uint64_t bytes_;
};

// Enqueues on `stream`, which belongs to `device`; the call may be captured. When `to` is not
// pinned, it may wait until the stream reaches the copy.
[[nodiscard]] Expected<void> CopyToHostAsync(const CudaDevice& device, std::span<std::byte> to,
                                             DevicePtr from, const Stream& stream);

// Sets `bytes` bytes at `ptr` to `value`, likewise.
[[nodiscard]] Expected<void> FillAsync(const CudaDevice& device, DevicePtr ptr, std::byte value,
                                       uint64_t bytes, const Stream& stream);

}  // namespace h2d

#endif  // H2D_DEVICE_CUDA_ENGINE_CUDA_MEMORY_H_
