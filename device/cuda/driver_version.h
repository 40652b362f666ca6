// Whether a driver runs what a program was built with.
#ifndef H2D_DEVICE_CUDA_DRIVER_VERSION_H_
#define H2D_DEVICE_CUDA_DRIVER_VERSION_H_

#include <string>

#include "h2d/device/error.h"

namespace h2d::internal {

// Versions are CUDA's own numbers: 1000 times the major version and 10 times the minor one.

// "12.8" for 12080.
std::string CudaVersionText(int version);

// Success when a driver that supports CUDA `driver` runs a program built with `runtime`: it runs
// every runtime of its own major version or an older one. `driver` is 0 where there is none.
Expected<void> CheckDriverVersion(int driver, int runtime);

}  // namespace h2d::internal

#endif  // H2D_DEVICE_CUDA_DRIVER_VERSION_H_
