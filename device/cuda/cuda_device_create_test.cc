// What `Create` says on the machine at hand, with and without a GPU.
#include <string>

#include "gtest/gtest.h"
#include "h2d/device/cuda/cuda_device.h"

namespace h2d {
namespace {

TEST(CudaDeviceCreateTest, WithoutAGpuTheErrorSaysWhatIsMissing) {
  const Expected<std::shared_ptr<CudaDevice>> device = CudaDevice::Create(0);
  if (device) GTEST_SKIP() << "this machine has a GPU";
  const std::string& message = device.error().message;
  EXPECT_EQ(device.error().code, ErrorCode::kFailedPrecondition) << message;
  EXPECT_NE(device.error().device_code, 0);
  EXPECT_TRUE(message.find("driver") != std::string::npos ||
              message.find("GPU") != std::string::npos)
      << message;
}

TEST(CudaDeviceCreateTest, AnOrdinalThatDoesNotExistIsRefusedWithTheCountThatDoes) {
  if (!CudaDevice::Create(0)) GTEST_SKIP() << "this machine has no GPU";
  for (const int ordinal : {-1, 1000}) {
    const Expected<std::shared_ptr<CudaDevice>> device = CudaDevice::Create(ordinal);
    ASSERT_FALSE(device.has_value());
    EXPECT_EQ(device.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(device.error().message.find(std::to_string(ordinal)), std::string::npos);
  }
}

}  // namespace
}  // namespace h2d
