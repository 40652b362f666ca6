// Makes a failing plan small: operations and the device's choices together.
#ifndef H2D_TESTS_SUPPORT_SHRINK_PLAN_H_
#define H2D_TESTS_SUPPORT_SHRINK_PLAN_H_

#include <cstdint>
#include <functional>

#include "h2d/tests/support/plan.h"

namespace h2d::testing {

// A plan that still fails, and of which no operation, no two of them and no byte that is not 0 can
// be left out without that it passes: bytes that are 0 are the simplest operation on the first
// stream with the kindest device. `fails` is called at most `max_runs` times; when they are used up
// the plan may be larger than that. REQUIRES: `fails(plan)`.
Plan ShrinkPlan(Plan plan, const std::function<bool(const Plan&)>& fails, uint64_t max_runs = 5000);

}  // namespace h2d::testing

#endif  // H2D_TESTS_SUPPORT_SHRINK_PLAN_H_
