// Every named state of the stager is reached by random plans: a branch that none of them takes is
// one that no property has tested.
#include <gtest/gtest.h>

#include "h2d/tests/properties/plan_property.h"

namespace h2d::testing {
namespace {

TEST(StateMarks, EachIsReachedBySomePlan) {
  std::vector<Mark> all;
  for (size_t i = 0; i < internal::kMarkCount; ++i) all.push_back(static_cast<Mark>(i));
  ExpectPlansHold("state_marks", ProfileWith({{OpKind::kFault, 3}}), all);
}

}  // namespace
}  // namespace h2d::testing
