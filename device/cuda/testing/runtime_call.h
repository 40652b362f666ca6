// Calls of the CUDA runtime in tests: by their results, on a chosen device.
#ifndef H2D_DEVICE_CUDA_TESTING_RUNTIME_CALL_H_
#define H2D_DEVICE_CUDA_TESTING_RUNTIME_CALL_H_

#include <cuda_runtime_api.h>

#include <string>
#include <string_view>

#include "h2d/device/error.h"

namespace h2d::conformance {

// The result of a call as an `Expected`; takes the runtime's last error away with it.
inline Expected<void> Called(std::string_view what, cudaError_t result) {
  if (result == cudaSuccess) return {};
  static_cast<void>(cudaGetLastError());
  return MakeError(ErrorCode::kDevice,
                   std::string(what) + " failed with " + cudaGetErrorName(result) + ".", result);
}

// Makes a device current for a scope.
class CurrentDevice {
 public:
  explicit CurrentDevice(int ordinal) {
    static_cast<void>(cudaGetDevice(&before_));
    if (before_ != ordinal) static_cast<void>(cudaSetDevice(ordinal));
  }
  ~CurrentDevice() {
    int now = before_;
    static_cast<void>(cudaGetDevice(&now));
    if (now != before_) static_cast<void>(cudaSetDevice(before_));
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int before_ = 0;
};

}  // namespace h2d::conformance

#endif  // H2D_DEVICE_CUDA_TESTING_RUNTIME_CALL_H_
