// One property of the library's own stager, over random plans on the simulated device.
#ifndef H2D_TESTS_PROPERTIES_PLAN_PROPERTY_H_
#define H2D_TESTS_PROPERTIES_PLAN_PROPERTY_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "h2d/stager/internal/state_mark.h"
#include "h2d/tests/support/plan_mark.h"
#include "h2d/tests/support/property.h"

namespace h2d::testing {

using internal::Mark;

// What each property runs by default: eleven of them make more than ten thousand plans.
inline constexpr uint64_t kPlansOfProperty = 1000;

// Runs random plans of `profile` and fails the calling test when one of them fails, when they are
// smaller than they are meant to be (a median of 30 operations, 3 streams, 2 tasks), or when one of
// `marks` and `of_plans` was reached by none of them, or by less than `per_mille`. Prints what they
// did and the share that reached each mark.
PropertyReport ExpectPlansHold(std::string_view name, const PlanProfile& profile,
                               const std::vector<Mark>& marks, uint64_t per_mille = 0,
                               const std::vector<PlanMark>& of_plans = {});

// For `PlanProfile::fix_op`: most faults strike the record of the next copy, which is then in
// flight with nothing to learn its completion from.
void FailNextRecordOften(PlanOp& op);

}  // namespace h2d::testing

#endif  // H2D_TESTS_PROPERTIES_PLAN_PROPERTY_H_
