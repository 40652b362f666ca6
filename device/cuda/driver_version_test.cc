#include "h2d/device/cuda/driver_version.h"

#include <string>

#include "gtest/gtest.h"

namespace h2d::internal {
namespace {

TEST(DriverVersionTest, ADriverRunsItsOwnMajorVersionAndOlderOnes) {
  EXPECT_TRUE(CheckDriverVersion(13000, 13000).has_value());
  EXPECT_TRUE(CheckDriverVersion(13000, 13010).has_value());
  EXPECT_TRUE(CheckDriverVersion(13000, 12080).has_value());
}

TEST(DriverVersionTest, ADriverThatIsTooOldIsNamedSoWithBothVersions) {
  const Expected<void> checked = CheckDriverVersion(12040, 13000);
  ASSERT_FALSE(checked.has_value());
  EXPECT_EQ(checked.error().code, ErrorCode::kFailedPrecondition);
  EXPECT_EQ(checked.error().message,
            "The NVIDIA driver is too old: it supports CUDA 12.4, and this program was built with "
            "CUDA 13.0.");
}

TEST(DriverVersionTest, NoDriverIsNoOldDriver) {
  const Expected<void> checked = CheckDriverVersion(0, 13000);
  ASSERT_FALSE(checked.has_value());
  EXPECT_EQ(checked.error().code, ErrorCode::kFailedPrecondition);
  EXPECT_NE(checked.error().message.find("no NVIDIA driver"), std::string::npos);
}

}  // namespace
}  // namespace h2d::internal
