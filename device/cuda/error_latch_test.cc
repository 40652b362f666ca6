#include "h2d/device/cuda/error_latch.h"

#include <string>

#include "gtest/gtest.h"

namespace h2d::internal {
namespace {

TEST(ErrorLatchTest, IsOpenUntilAnErrorClosesIt) {
  ErrorLatch latch;
  EXPECT_FALSE(latch.closed());
  latch.Close(Error{ErrorCode::kDevice, 700, "Copying failed."});
  EXPECT_TRUE(latch.closed());
}

TEST(ErrorLatchTest, LaterCallsAnswerWithTheFirstCause) {
  ErrorLatch latch;
  latch.Close(Error{ErrorCode::kDevice, 700, "Copying failed."});
  latch.Close(Error{ErrorCode::kDevice, 719, "Recording failed."});
  const Expected<void> failure = latch.Failure();
  ASSERT_FALSE(failure.has_value());
  EXPECT_EQ(failure.error().code, ErrorCode::kDevice);
  EXPECT_EQ(failure.error().device_code, 700);
  EXPECT_NE(failure.error().message.find("Copying failed."), std::string::npos);
}

}  // namespace
}  // namespace h2d::internal
