// CUDA's error numbers as errors of the library: a name, what was attempted, and what it means.
#ifndef H2D_DEVICE_CUDA_CUDA_ERROR_H_
#define H2D_DEVICE_CUDA_CUDA_ERROR_H_

#include <string>
#include <string_view>

#include "h2d/device/error.h"

namespace h2d::internal {

// The runtime and the driver number their errors alike; these functions take either's.

// "cudaErrorIllegalAddress (700: an illegal memory access was encountered)".
std::string DescribeCudaError(int code);

// `kInvalidArgument` for values and handles that CUDA refused, `kResourceExhausted` for memory,
// `kFailedPrecondition` for what a capture forbids, `kDevice` for all else.
ErrorCode CodeOfCudaError(int code) noexcept;

// Whether the error ends the use of the device in this process: every later call returns it too.
bool IsStickyCudaError(int code) noexcept;

// "<attempt> failed with cudaErrorInvalidValue (1: invalid argument)."
Error CudaErrorOf(int code, std::string_view attempt);
Unexpected CudaFailure(int code, std::string_view attempt);

}  // namespace h2d::internal

#endif  // H2D_DEVICE_CUDA_CUDA_ERROR_H_
