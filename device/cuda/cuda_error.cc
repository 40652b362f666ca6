#include "h2d/device/cuda/cuda_error.h"

#include <cuda_runtime_api.h>

namespace h2d::internal {

std::string DescribeCudaError(int code) {
  const auto error = static_cast<cudaError_t>(code);
  return std::string(cudaGetErrorName(error)) + " (" + std::to_string(code) + ": " +
         cudaGetErrorString(error) + ")";
}

ErrorCode CodeOfCudaError(int code) noexcept {
  if (code >= cudaErrorStreamCaptureUnsupported && code <= cudaErrorStreamCaptureWrongThread) {
    return ErrorCode::kFailedPrecondition;
  }
  switch (code) {
    case cudaErrorInvalidValue:
    case cudaErrorInvalidDevice:
    case cudaErrorInvalidResourceHandle:
      return ErrorCode::kInvalidArgument;
    case cudaErrorMemoryAllocation:
      return ErrorCode::kResourceExhausted;
    default:
      return ErrorCode::kDevice;
  }
}

bool IsStickyCudaError(int code) noexcept {
  switch (code) {
    case cudaErrorCudartUnloading:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorContextIsDestroyed:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorTensorMemoryLeak:
    case cudaErrorExternalDevice:
      return true;
    default:
      return false;
  }
}

Error CudaErrorOf(int code, std::string_view attempt) {
  return Error{CodeOfCudaError(code), code,
               std::string(attempt) + " failed with " + DescribeCudaError(code) + "."};
}

Unexpected CudaFailure(int code, std::string_view attempt) {
  return Unexpected(CudaErrorOf(code, attempt));
}

}  // namespace h2d::internal
