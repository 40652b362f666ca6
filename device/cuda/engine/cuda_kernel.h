// A kernel for a CUDA device, from PTX text or a compiled image: no CUDA compiler is needed.
#ifndef H2D_DEVICE_CUDA_ENGINE_CUDA_KERNEL_H_
#define H2D_DEVICE_CUDA_ENGINE_CUDA_KERNEL_H_

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "h2d/device/cuda/cuda_device.h"
#include "h2d/device/error.h"
#include "h2d/device/stream.h"

struct CUlib_st;

namespace h2d {

// Owns the loaded image; move-only; in a forked child and at exit it is quiet.
class CudaKernel {
 public:
  // The kernel that is called `name` in `image`, PTX text that ends with a 0 or a cubin. Leaves
  // captures alone.
  [[nodiscard]] static Expected<CudaKernel> Load(const CudaDevice& device, const char* image,
                                                 const char* name);

  // Enqueues a launch with one dimension of blocks and of threads. `arguments` hold the address of
  // each parameter, in order; they are read during the call.
  [[nodiscard]] Expected<void> Launch(const Stream& stream, uint32_t blocks, uint32_t threads,
                                      std::span<void*> arguments) const;

 private:
  struct Unload {
    std::shared_ptr<internal::CudaState> state;
    void operator()(CUlib_st* library) const noexcept;
  };
  using Owned = std::unique_ptr<CUlib_st, Unload>;

  CudaKernel(Owned library, const void* kernel) noexcept
      : library_(std::move(library)), kernel_(kernel) {}

  Owned library_;
  const void* kernel_;
};

}  // namespace h2d

#endif  // H2D_DEVICE_CUDA_ENGINE_CUDA_KERNEL_H_
