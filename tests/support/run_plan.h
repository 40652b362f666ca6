// Runs a plan on a stager and judges it against an oracle that copies everything.
//
// The callers in a plan keep every rule that the contract gives to callers, and not one more:
// writes are ordered after earlier readers, kernels and plain copies after everything, reads after
// the last write's call. So with a correct stager no schedule has a race, every reader sees what
// full copies would have left, and anything else is a fault of the stager.
#ifndef H2D_TESTS_SUPPORT_RUN_PLAN_H_
#define H2D_TESTS_SUPPORT_RUN_PLAN_H_

#include <array>
#include <cstdint>
#include <string>

#include "h2d/stager/stager_stats.h"
#include "h2d/tests/support/plan.h"
#include "h2d/tests/support/plan_harness.h"
#include "h2d/tests/support/plan_mark.h"
#include "h2d/tests/support/stager_under_test.h"

namespace h2d::testing {

struct RunCounts {
  std::array<uint64_t, kOpKinds> ops = {};  // that did something
  uint64_t issued = 0;
  uint64_t trimmed = 0;
  uint64_t skipped = 0;
  uint64_t would_block = 0;
  uint64_t slots_refused = 0;  // to callers that would not wait
  uint64_t refused = 0;        // because of a capture
  uint64_t unavailable = 0;    // no slot in time, or an order not known
  uint64_t device_errors = 0;  // faults that reached the caller
  uint64_t reads_checked = 0;
  uint64_t overlapped = 0;  // calls on one mirror at the same time
  uint64_t bytes_sent = 0;
  std::array<uint64_t, kPlanMarkCount> marks = {};
  StagerStats stats;  // at the end, when the stager keeps them
};

struct RunResult {
  std::string failure;  // one sentence or more; empty: the stager did everything right
  RunCounts counts;
  std::string timeline;  // of a failure
  uint64_t trace_hash = 0;

  bool ok() const noexcept { return failure.empty(); }
};

RunResult RunPlan(const Plan& plan, PlanHarness& harness, const StagerFactory& make_stager);

}  // namespace h2d::testing

#endif  // H2D_TESTS_SUPPORT_RUN_PLAN_H_
