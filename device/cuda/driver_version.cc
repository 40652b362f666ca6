#include "h2d/device/cuda/driver_version.h"

namespace h2d::internal {
namespace {

constexpr int kInsufficientDriver = 35;  // cudaErrorInsufficientDriver

}  // namespace

std::string CudaVersionText(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

Expected<void> CheckDriverVersion(int driver, int runtime) {
  if (driver == 0) {
    return MakeError(ErrorCode::kFailedPrecondition,
                     "This machine has no NVIDIA driver, so it has no CUDA device to create.",
                     kInsufficientDriver);
  }
  if (driver / 1000 < runtime / 1000) {
    return MakeError(ErrorCode::kFailedPrecondition,
                     "The NVIDIA driver is too old: it supports CUDA " + CudaVersionText(driver) +
                         ", and this program was built with CUDA " + CudaVersionText(runtime) + ".",
                     kInsufficientDriver);
  }
  return {};
}

}  // namespace h2d::internal
