// The numbers by which the library tells CUDA devices and their address space apart.
#ifndef H2D_DEVICE_CUDA_DEVICE_TAGS_H_
#define H2D_DEVICE_CUDA_DEVICE_TAGS_H_

#include <cstdint>

namespace h2d::internal {

// The tag of the streams of the device `ordinal` (not negative), the same for every `CudaDevice`
// made of it: they share its primary context, and so its streams. Thread-safe.
uint64_t CudaDeviceTag(int ordinal);

// The one address space of all CUDA devices of this process. Thread-safe.
uint64_t CudaMemorySpace() noexcept;

}  // namespace h2d::internal

#endif  // H2D_DEVICE_CUDA_DEVICE_TAGS_H_
