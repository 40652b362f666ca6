// Every named state of the stager is reached by random plans, and by so many that their operations
// before and after it vary: a branch that few of them take is one that no property has tested.
#include <gtest/gtest.h>

#include "h2d/tests/properties/plan_property.h"

namespace h2d::testing {
namespace {

TEST(StateMarks, EachIsReachedByOnePlanInAHundred) {
  std::vector<Mark> all;
  for (size_t i = 0; i < internal::kMarkCount; ++i) all.push_back(static_cast<Mark>(i));
  std::vector<PlanMark> of_plans;
  for (size_t i = 0; i < kPlanMarkCount; ++i) of_plans.push_back(static_cast<PlanMark>(i));
  PlanProfile profile = ProfileWith({{OpKind::kFault, 7}, {OpKind::kHold, 4}});
  profile.fix_op = [](PlanOp& op) {
    if (op.position % 2 == 0) FailNextRecordOften(op);
  };
  ExpectPlansHold("state_marks", profile, all, /*per_mille=*/10, of_plans);
}

}  // namespace
}  // namespace h2d::testing
