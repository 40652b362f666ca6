// Plants each known fault in a stager and demands that random plans report it: the proof that the
// fake's detector and the plan runner's oracle see what they are there to see.
#include <gtest/gtest.h>

#include <iostream>

#include "h2d/tests/support/fake_harness.h"
#include "h2d/tests/support/property.h"
#include "h2d/tests/wrong_stagers/little_stager.h"

namespace h2d::testing {
namespace {

constexpr uint64_t kPlansForRightOne = 1000;
// Not of the environment: each must be found, and most are within the first few.
constexpr uint64_t kPlansForFlaw = 2000;

PlanCheck On(const StagerFactory& stager) {
  return [stager](const Plan& plan, bool keep_trace) {
    return RunPlan(plan, *MakeFakeHarness(plan, {.keep_trace = keep_trace}), stager);
  };
}

TEST(LittleStager, WithoutAFlawPassesEveryPlan) {
  const PropertyReport report =
      CheckPlans("little stager", ProfileWith({{OpKind::kFault, 1}}),
                 On(LittleStagerWith(Flaw::kNone)), PlansFromEnvironment(kPlansForRightOne));
  std::cout << ToString(report) << "\n";
  EXPECT_EQ(report.failure, "");
}

class WrongStager : public ::testing::TestWithParam<uint32_t> {};

TEST_P(WrongStager, IsReported) {
  const auto flaw = static_cast<Flaw>(GetParam());
  PlanProfile profile = ProfileWith({{OpKind::kFault, 2}, {OpKind::kBadCall, 1}});
  profile.shrink = false;  // that it fails is enough here
  const PropertyReport report =
      CheckPlans(ToString(flaw), profile, On(LittleStagerWith(flaw)), kPlansForFlaw);
  EXPECT_NE(report.failure, "") << ToString(flaw) << " passed " << report.plans << " plans";
  std::cout << ToString(flaw) << ": reported by plan " << report.plans_until_failure << ": "
            << report.failure.substr(0, report.failure.find('\n')) << "\n";
}

INSTANTIATE_TEST_SUITE_P(EachFlaw, WrongStager, ::testing::Range(1U, kFlaws));

}  // namespace
}  // namespace h2d::testing
