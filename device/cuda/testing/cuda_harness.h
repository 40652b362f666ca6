// The conformance harness on a GPU.
#ifndef H2D_DEVICE_CUDA_TESTING_CUDA_HARNESS_H_
#define H2D_DEVICE_CUDA_TESTING_CUDA_HARNESS_H_

#include <memory>

#include "h2d/device/conformance/harness.h"
#include "h2d/device/error.h"

namespace h2d::conformance {

// For the device `ordinal`; its `Second` is the next ordinal, when there is one and `with_second`.
// Errors: as `CudaDevice::Create`.
Expected<std::unique_ptr<Harness>> MakeCudaHarness(int ordinal, bool with_second);

}  // namespace h2d::conformance

#endif  // H2D_DEVICE_CUDA_TESTING_CUDA_HARNESS_H_
