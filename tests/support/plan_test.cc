#include "h2d/tests/support/plan.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace h2d::testing {
namespace {

// Bytes that look random and are the same everywhere.
std::vector<uint8_t> SomeBytes(size_t count) {
  std::vector<uint8_t> bytes(count);
  uint32_t state = static_cast<uint32_t>(count) + 1;
  for (uint8_t& byte : bytes) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<uint8_t>(state >> 24);
  }
  return bytes;
}

TEST(Plan, EveryByteStringIsAPlanThatEncodesToItself) {
  for (size_t count = 0; count < 100; ++count) {
    const Plan plan = DecodePlan(SomeBytes(count));
    EXPECT_EQ(DecodePlan(EncodePlan(plan)), plan) << count << " bytes";
    EXPECT_TRUE(Validate(plan.header.stager_options()).has_value()) << count << " bytes";
  }
}

TEST(Plan, RemovingAnOperationChangesNoOther) {
  std::vector<uint8_t> bytes = SomeBytes(kPlanHeaderBytes + 3 * kPlanOpBytes);
  const Plan whole = DecodePlan(bytes);
  const auto second = bytes.begin() + kPlanHeaderBytes + kPlanOpBytes;
  bytes.erase(second, second + kPlanOpBytes);
  const Plan shorter = DecodePlan(bytes);
  ASSERT_EQ(shorter.ops.size(), 2U);
  EXPECT_EQ(shorter.header, whole.header);
  EXPECT_EQ(shorter.ops[0], whole.ops[0]);
  EXPECT_EQ(shorter.ops[1], whole.ops[2]);
}

TEST(Plan, EveryHeaderGivesOptionsThatAreValid) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::vector<uint8_t> bytes(kPlanHeaderBytes, static_cast<uint8_t>(byte));
    const Plan plan = DecodePlan(bytes);
    EXPECT_GE(plan.header.stream_count(), 3U);
    EXPECT_GE(plan.header.task_count(), 2U);
    EXPECT_TRUE(Validate(plan.header.stager_options()).has_value());
  }
}

TEST(Plan, ATokenGivesBackItsBytes) {
  for (size_t count = 0; count < 100; ++count) {
    const std::vector<uint8_t> bytes = SomeBytes(count);
    const auto decoded = PlanFromToken(PlanToToken(bytes));
    ASSERT_TRUE(decoded.has_value()) << count << " bytes";
    EXPECT_EQ(*decoded, bytes);
  }
}

TEST(Plan, WhatIsNoTokenIsRefused) {
  EXPECT_FALSE(PlanFromToken("").has_value());
  EXPECT_FALSE(PlanFromToken("AAAA").has_value());
  EXPECT_FALSE(PlanFromToken("h2d1:A").has_value());
  EXPECT_FALSE(PlanFromToken("h2d1:A+AA").has_value());
}

}  // namespace
}  // namespace h2d::testing
