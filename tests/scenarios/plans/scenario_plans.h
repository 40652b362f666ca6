// The scenarios of the field as plans: what callers of a stager do, in a form that can be run again
// with any call of the device failing.
//
// The tests beside this folder say what each scenario must answer when nothing fails. A plan says
// only what is called; what must hold whatever is answered, the plan runner knows
// (tests/support/run_plan.h): every reader sees what full copies would have left, no slot is lost,
// no mirror lies, nothing leaks.
#ifndef H2D_TESTS_SCENARIOS_PLANS_SCENARIO_PLANS_H_
#define H2D_TESTS_SCENARIOS_PLANS_SCENARIO_PLANS_H_

#include <string_view>
#include <vector>

#include "h2d/stager/internal/state_mark.h"
#include "h2d/tests/support/plan.h"

namespace h2d::scenarios {

struct ScenarioPlan {
  std::string_view name;
  // The numbers of README.md; empty for one of steps and batches.
  std::string_view numbers;
  testing::Plan plan;
  // What the run reaches on a kind device when nothing fails: or it would be another scenario.
  std::vector<internal::Mark> marks;
};

// On a kind device.
const std::vector<ScenarioPlan>& ScenarioPlans();

// The same on a device with every adversary that a held stream allows.
testing::Plan OnUnkindDevice(testing::Plan plan);

}  // namespace h2d::scenarios

#endif  // H2D_TESTS_SCENARIOS_PLANS_SCENARIO_PLANS_H_
