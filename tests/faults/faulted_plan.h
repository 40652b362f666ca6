// One run of a plan on the library's own stager while one call of the device fails.
#ifndef H2D_TESTS_FAULTS_FAULTED_PLAN_H_
#define H2D_TESTS_FAULTS_FAULTED_PLAN_H_

#include "h2d/device/faulty/fault.h"
#include "h2d/tests/support/plan.h"
#include "h2d/tests/support/run_plan.h"

namespace h2d::testing {

// The fault's calls are counted from the stager's construction on; one that the constructor answers
// with is judged as well. Besides what the plan runner demands, no pinned memory may leak.
RunResult RunWithFault(const Plan& plan, const Fault& fault, bool keep_trace, bool& struck);

}  // namespace h2d::testing

#endif  // H2D_TESTS_FAULTS_FAULTED_PLAN_H_
