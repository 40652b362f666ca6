// Plans on the simulated device.
#ifndef H2D_TESTS_SUPPORT_FAKE_HARNESS_H_
#define H2D_TESTS_SUPPORT_FAKE_HARNESS_H_

#include <memory>

#include "h2d/tests/support/plan.h"
#include "h2d/tests/support/plan_harness.h"

namespace h2d::testing {

struct FakeHarnessOptions {
  bool keep_trace = false;  // for `Timeline`; costs time
  bool detect_hazards = true;
};

std::unique_ptr<PlanHarness> MakeFakeHarness(const Plan& plan,
                                             const FakeHarnessOptions& options = {});

}  // namespace h2d::testing

#endif  // H2D_TESTS_SUPPORT_FAKE_HARNESS_H_
