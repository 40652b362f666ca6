#include "h2d/device/conformance/exclusions.h"

#include "gtest/gtest.h"

namespace h2d::conformance {
namespace {

TEST(ExclusionsTest, AnEntryNamesOneTestOrAWholeSuite) {
  const std::vector<Exclusion> exclusions = {{"Events.One", "a"}, {"Capture.*", "b"}};
  EXPECT_EQ(FindExclusion(exclusions, "Events.One"), &exclusions[0]);
  EXPECT_EQ(FindExclusion(exclusions, "Events.OneMore"), nullptr);
  EXPECT_EQ(FindExclusion(exclusions, "Capture.Any"), &exclusions[1]);
  EXPECT_EQ(FindExclusion(exclusions, "CaptureMore.Any"), nullptr);
}

}  // namespace
}  // namespace h2d::conformance
