// Calls of the CUDA runtime that mean one device, on any thread.
#ifndef H2D_DEVICE_CUDA_ENGINE_ON_DEVICE_H_
#define H2D_DEVICE_CUDA_ENGINE_ON_DEVICE_H_

#include <cuda_runtime_api.h>

#include <string_view>

#include "h2d/device/argument_checks.h"
#include "h2d/device/cuda/capture_guard.h"
#include "h2d/device/cuda/cuda_error.h"
#include "h2d/device/cuda/cuda_state.h"
#include "h2d/device/error.h"

namespace h2d::internal {

// Makes `call`, which answers a `cudaError_t` or a `CUresult`, with the device's primary context
// current. The thread's current device is the same afterwards, and a failure leaves no last error
// of the runtime behind.
template <class Call>
Expected<void> OnDevice(const CudaState& state, std::string_view attempt, const Call& call) {
  if (!state.in_own_process()) return argument_errors::ForkedChild();
  const CUresult result = state.InOwnContext([&] { return static_cast<CUresult>(call()); });
  if (result == CUDA_SUCCESS) return {};
  static_cast<void>(cudaGetLastError());
  return CudaFailure(result, attempt);
}

// The same, for calls that would invalidate a capture: see `CaptureGuard`.
template <class Call>
Expected<void> BesideCaptures(const CudaState& state, std::string_view attempt, const Call& call) {
  return OnDevice(state, attempt, [&] {
    const CaptureGuard guard(state.api());
    return call();
  });
}

}  // namespace h2d::internal

#endif  // H2D_DEVICE_CUDA_ENGINE_ON_DEVICE_H_
