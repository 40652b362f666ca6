// Every named state of the stager is reached by random plans, and by so many that their operations
// before and after it vary: a branch that few of them take is one that no property has tested.
#include <gtest/gtest.h>

#include "h2d/tests/properties/plan_property.h"

namespace h2d::testing {
namespace {

TEST(StateMarks, EachIsReachedByOnePlanInAHundred) {
  std::vector<Mark> all;
  for (size_t i = 0; i < internal::kFirstStepMark; ++i) all.push_back(static_cast<Mark>(i));
  PlanProfile profile = ProfileWith({{OpKind::kFault, 4}, {OpKind::kHold, 4}});
  profile.fix_op = [](PlanOp& op) {
    if (op.position % 2 == 0) FailNextRecordOften(op);
  };
  ExpectPlansHold("state_marks", profile, all, /*per_mille=*/10);
}

}  // namespace
}  // namespace h2d::testing
