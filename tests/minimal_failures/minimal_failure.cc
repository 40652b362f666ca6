#include "h2d/tests/minimal_failures/minimal_failure.h"

#include <utility>

#include "h2d/tests/support/fake_harness.h"
#include "h2d/tests/support/property.h"
#include "h2d/tests/wrong_stagers/little_stager.h"

namespace h2d::testing {
namespace {

constexpr uint64_t kMaxPlans = 2000;

}  // namespace

std::optional<MinimalFailure> FindMinimalFailure(Flaw flaw) {
  const PlanCheck check = [stager = LittleStagerWith(flaw)](const Plan& plan, bool keep_trace) {
    return RunPlan(plan, *MakeFakeHarness(plan, {.keep_trace = keep_trace}), stager);
  };
  const PlanProfile profile =
      WithoutSteps(ProfileWith({{OpKind::kFault, 2}, {OpKind::kBadCall, 1}}));
  const PropertyReport report = CheckPlans(ToString(flaw), profile, check, kMaxPlans);
  const auto bytes = PlanFromToken(report.token);
  if (report.failure.empty() || !bytes) return std::nullopt;
  MinimalFailure found{report.plans_until_failure, DecodePlan(*bytes), report.token, {}};
  found.result = check(found.plan, true);
  return found;
}

}  // namespace h2d::testing
