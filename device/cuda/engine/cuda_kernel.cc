#include "h2d/device/cuda/engine/cuda_kernel.h"

#include <cuda_runtime_api.h>

#include <string>

#include "h2d/device/cuda/engine/on_device.h"

namespace h2d {

Expected<CudaKernel> CudaKernel::Load(const CudaDevice& device, const char* image,
                                      const char* name) {
  cudaLibrary_t library = nullptr;
  Expected<void> ok = internal::BesideCaptures(*device.state(), "Loading a kernel", [&] {
    return cudaLibraryLoadData(&library, image, nullptr, nullptr, 0, nullptr, nullptr, 0);
  });
  if (!ok) return ErrorOf(ok);
  Owned owned(library, Unload{device.state()});
  cudaKernel_t kernel = nullptr;
  ok = internal::BesideCaptures(*device.state(), "Finding the kernel " + std::string(name),
                                [&] { return cudaLibraryGetKernel(&kernel, library, name); });
  if (!ok) return ErrorOf(ok);
  return CudaKernel(std::move(owned), reinterpret_cast<const void*>(kernel));
}

Expected<void> CudaKernel::Launch(const Stream& stream, uint32_t blocks, uint32_t threads,
                                  std::span<void*> arguments) const {
  return internal::OnDevice(*library_.get_deleter().state, "Launching a kernel", [&] {
    return cudaLaunchKernel(kernel_, dim3(blocks), dim3(threads), arguments.data(),
                            /*sharedMem=*/0, CudaDevice::Native(stream));
  });
}

void CudaKernel::Unload::operator()(CUlib_st* library) const noexcept {
  static_cast<void>(internal::BesideCaptures(*state, "Unloading a kernel",
                                             [&] { return cudaLibraryUnload(library); }));
}

}  // namespace h2d
