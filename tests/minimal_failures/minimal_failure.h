// What is left of the first plan that reports a planted fault when nothing more can be left out.
#ifndef H2D_TESTS_MINIMAL_FAILURES_MINIMAL_FAILURE_H_
#define H2D_TESTS_MINIMAL_FAILURES_MINIMAL_FAILURE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "h2d/tests/support/plan.h"
#include "h2d/tests/support/run_plan.h"
#include "h2d/tests/wrong_stagers/flaw.h"

namespace h2d::testing {

struct MinimalFailure {
  uint64_t plans = 0;  // tried until one failed
  Plan plan;
  std::string token;
  RunResult result;
};

// Nothing when no plan reports the fault.
std::optional<MinimalFailure> FindMinimalFailure(Flaw flaw);

}  // namespace h2d::testing

#endif  // H2D_TESTS_MINIMAL_FAILURES_MINIMAL_FAILURE_H_
