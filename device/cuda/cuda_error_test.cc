#include "h2d/device/cuda/cuda_error.h"

#include <driver_types.h>

#include <string>

#include "gtest/gtest.h"

namespace h2d::internal {
namespace {

TEST(CudaErrorTest, AnErrorCarriesItsNameItsNumberAndWhatWasAttempted) {
  const Error error = CudaErrorOf(cudaErrorIllegalAddress, "Copying 64 bytes");
  EXPECT_EQ(error.device_code, 700);
  EXPECT_EQ(error.code, ErrorCode::kDevice);
  EXPECT_EQ(error.message,
            "Copying 64 bytes failed with cudaErrorIllegalAddress (700: an illegal memory access "
            "was encountered).");
}

TEST(CudaErrorTest, CodesTellTheCallersMistakesFromTheDevicesFailures) {
  EXPECT_EQ(CodeOfCudaError(cudaErrorInvalidValue), ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOfCudaError(cudaErrorInvalidResourceHandle), ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOfCudaError(cudaErrorMemoryAllocation), ErrorCode::kResourceExhausted);
  EXPECT_EQ(CodeOfCudaError(cudaErrorStreamCaptureUnsupported), ErrorCode::kFailedPrecondition);
  EXPECT_EQ(CodeOfCudaError(cudaErrorStreamCaptureWrongThread), ErrorCode::kFailedPrecondition);
  EXPECT_EQ(CodeOfCudaError(cudaErrorLaunchFailure), ErrorCode::kDevice);
}

TEST(CudaErrorTest, OnlyErrorsThatEndTheDeviceAreSticky) {
  EXPECT_TRUE(IsStickyCudaError(cudaErrorIllegalAddress));
  EXPECT_TRUE(IsStickyCudaError(cudaErrorCudartUnloading));
  EXPECT_FALSE(IsStickyCudaError(cudaErrorInvalidValue));
  EXPECT_FALSE(IsStickyCudaError(cudaErrorMemoryAllocation));
  EXPECT_FALSE(IsStickyCudaError(cudaErrorStreamCaptureUnsupported));
}

}  // namespace
}  // namespace h2d::internal
