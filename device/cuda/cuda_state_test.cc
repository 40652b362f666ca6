// Pinned memory over a driver that the test plays: a free that fails only rarely on hardware fails
// here when it is told to. Runs without a GPU.
#include "h2d/device/cuda/cuda_state.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "h2d/device/cuda/testing/played_driver.h"

namespace h2d::internal {
namespace {

class CudaStateTest : public testing::Test {
 protected:
  // Two blocks, both idle.
  void SetUp() override {
    const Expected<std::byte*> first = state_->TakePinned(4096);
    const Expected<std::byte*> second = state_->TakePinned(4096);
    ASSERT_TRUE(first.has_value() && second.has_value());
    state_->ReleasePinned(*first, 4096);
    state_->ReleasePinned(*second, 4096);
    driver_.TakeCalls();
  }

  int64_t CallsOf(const std::string& name) {
    const std::vector<std::string> calls = driver_.TakeCalls();
    return std::ranges::count(calls, name);
  }

  PlayedDriver driver_;
  std::shared_ptr<CudaState> state_ =
      std::make_shared<CudaState>(driver_.api(), /*ordinal=*/0, /*device=*/0,
                                  PlayedDriver::kPrimary, /*max_pinned_bytes=*/8192);
};

TEST_F(CudaStateTest, BlocksThatTheDriverDoesNotTakeBackStayKnown) {
  driver_.Answer("MemFreeHost", CUDA_ERROR_UNKNOWN);
  const Expected<void> trimmed = state_->FreeIdle();
  ASSERT_FALSE(trimmed.has_value());
  const std::string& message = trimmed.error().message;
  EXPECT_NE(message.find("Freeing 2 idle blocks"), std::string::npos) << message;
  EXPECT_NE(message.find("2 stay in its cache"), std::string::npos) << message;
  EXPECT_NE(message.find("cudaErrorUnknown"), std::string::npos) << message;
  // They count against the limit, and serve.
  driver_.TakeCalls();
  EXPECT_FALSE(state_->TakePinned(8192).has_value());
  const Expected<std::byte*> again = state_->TakePinned(4096);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(CallsOf("MemHostAlloc"), 0);
  state_->ReleasePinned(*again, 4096);
  // A later try frees them.
  driver_.Answer("MemFreeHost", CUDA_SUCCESS);
  EXPECT_TRUE(state_->FreeIdle().has_value());
  EXPECT_TRUE(driver_.pinned.empty());
  EXPECT_TRUE(state_->TakePinned(8192).has_value());
}

TEST_F(CudaStateTest, AfterAStickyErrorNothingMoreIsFreedAndTheDeviceAnswersWithIt) {
  driver_.Answer("MemFreeHost", CUDA_ERROR_ILLEGAL_ADDRESS);
  const Expected<void> trimmed = state_->FreeIdle();
  ASSERT_FALSE(trimmed.has_value());
  EXPECT_NE(trimmed.error().message.find("cudaErrorIllegalAddress"), std::string::npos);
  EXPECT_EQ(CallsOf("MemFreeHost"), 1);
  EXPECT_TRUE(state_->latch().closed());
  state_.reset();
  EXPECT_TRUE(driver_.TakeCalls().empty());
}

TEST_F(CudaStateTest, TheEndFreesIdleMemoryAndTheContext) {
  state_.reset();
  EXPECT_TRUE(driver_.pinned.empty());
  EXPECT_EQ(CallsOf("DevicePrimaryCtxRelease"), 1);
}

TEST_F(CudaStateTest, TheContextIsKeptWhileMemoryInItCouldNotBeFreed) {
  driver_.Answer("MemFreeHost", CUDA_ERROR_UNKNOWN);
  state_.reset();
  EXPECT_EQ(driver_.pinned.size(), 2U);
  EXPECT_EQ(CallsOf("DevicePrimaryCtxRelease"), 0);
}

}  // namespace
}  // namespace h2d::internal
