// Properties over random plans: generates them, runs them, shrinks the first that fails and prints
// one token that replays it. The generator behind it is rapidcheck, which nothing else sees.
#ifndef H2D_TESTS_SUPPORT_PROPERTY_H_
#define H2D_TESTS_SUPPORT_PROPERTY_H_

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "h2d/tests/support/plan.h"
#include "h2d/tests/support/run_plan.h"

namespace h2d::testing {

// What a property's plans consist of.
struct PlanProfile {
  // How often each kind of operation comes, relative to the others. Every plan leaves some kinds
  // out (a swarm), so that it can do much of the rest.
  std::array<uint8_t, kOpKinds> weights = {};
  // Changes every header before it is used, and so what a token holds.
  std::function<void(PlanHeader&)> fix_header = {};
  // ... and every operation.
  std::function<void(PlanOp&)> fix_op = {};
  uint32_t max_ops = 90;  // half of the plans have at least half as many
  bool shrink = true;     // the first plan that fails, to as little as still fails
};

// A bit of everything but faults.
PlanProfile GeneralProfile();
// The same with other weights for some kinds.
PlanProfile ProfileWith(std::initializer_list<std::pair<OpKind, uint8_t>> weights);

// The same without operations of steps and batches, for a stager that lacks them.
PlanProfile WithoutSteps(PlanProfile profile);

// Runs one plan; called with `keep_trace` when the time line is wanted.
using PlanCheck = std::function<RunResult(const Plan& plan, bool keep_trace)>;

struct PropertyReport {
  std::string failure;  // with the token, the plan and the time line; empty when all plans passed
  uint64_t plans = 0;
  uint64_t median_ops = 0;
  uint64_t fewest_streams = 0;
  uint64_t fewest_tasks = 0;
  RunCounts totals;   // over all plans; without the statistics
  std::string token;  // of the minimal failure
  uint64_t plans_until_failure = 0;
};

// Runs `plans` plans, or fewer when one fails; which, the environment says (random_runs.h). With a
// token to replay runs that plan alone and prints its time line.
PropertyReport CheckPlans(std::string_view name, const PlanProfile& profile, const PlanCheck& check,
                          uint64_t plans);

// What a run did, for a person.
std::string ToString(const PropertyReport& report);

}  // namespace h2d::testing

#endif  // H2D_TESTS_SUPPORT_PROPERTY_H_
