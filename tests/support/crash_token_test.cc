#include "h2d/tests/support/crash_token.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <vector>

#include "h2d/tests/support/plan.h"

namespace h2d::testing {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kAddressSanitizer = true;
#elif defined(__has_feature)
constexpr bool kAddressSanitizer = __has_feature(address_sanitizer);
#else
constexpr bool kAddressSanitizer = false;
#endif

std::vector<uint8_t> SomePlan() {
  Plan plan;
  plan.ops.resize(3);
  plan.ops[1].kind = OpKind::kRead;
  return EncodePlan(plan);
}

TEST(CrashTokenDeathTest, ACrashPrintsTheTokenOfItsPlan) {
  const std::vector<uint8_t> plan = SomePlan();
  EXPECT_DEATH(
      {
        SetCrashPlan(plan);
        std::abort();
      },
      PlanToToken(plan));
}

TEST(CrashTokenDeathTest, ATimeOutPrintsTheTokenOfItsPlan) {
  const std::vector<uint8_t> plan = SomePlan();
  EXPECT_EXIT(
      {
        SetCrashPlan(plan);
        std::raise(SIGTERM);
      },
      ::testing::KilledBySignal(SIGTERM), PlanToToken(plan));
}

TEST(CrashTokenDeathTest, ASanitizersDeathPrintsTheTokenOfItsPlan) {
  if (!kAddressSanitizer) GTEST_SKIP() << "there is no sanitizer to die of";
  const std::vector<uint8_t> plan = SomePlan();
  std::vector<uint8_t> bytes(8);
  volatile size_t outside = 9;
  EXPECT_DEATH(
      {
        SetCrashPlan(plan);
        bytes.data()[outside] = 1;
      },
      PlanToToken(plan));
}

TEST(CrashTokenDeathTest, APlanThatIsOverIsNotBlamed) {
  EXPECT_DEATH(
      {
        SetCrashPlan(SomePlan());
        ClearCrashPlan();
        std::abort();
      },
      ::testing::Not(::testing::HasSubstr("h2d1:")));
}

}  // namespace
}  // namespace h2d::testing
