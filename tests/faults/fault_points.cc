#include "h2d/tests/faults/fault_points.h"

namespace h2d::testing {
namespace {

// One way of failing, at each call of one kind.
std::string FailCallAfterCall(Fault fault, const std::function<FaultedRun(const Fault&)>& run,
                              FaultTotals& totals) {
  for (fault.call = 1;; ++fault.call) {
    const FaultedRun result = run(fault);
    ++totals.runs;
    totals.points += result.struck ? 1 : 0;
    totals.errors += result.errors;
    if (!result.failure.empty()) return ToString(fault) + ": " + result.failure;
    if (!result.struck) return {};
  }
}

}  // namespace

std::string ToString(const Fault& fault) {
  const char* span = fault.span == FaultSpan::kOnce      ? "once"
                     : fault.span == FaultSpan::kForEver ? "for ever"
                                                         : "and the device is lost";
  return "call " + std::to_string(fault.call) + " of " + std::string(h2d::ToString(fault.kind)) +
         " fails " + span +
         (fault.timing == FaultTiming::kAfterCall ? ", after it was carried out" : "");
}

std::string FailEachCall(const std::function<FaultedRun(const Fault&)>& run, FaultTotals& totals) {
  for (const CallKind kind : kCallKinds) {
    for (const FaultSpan span : {FaultSpan::kOnce, FaultSpan::kForEver, FaultSpan::kSticky}) {
      for (const FaultTiming timing : {FaultTiming::kBeforeCall, FaultTiming::kAfterCall}) {
        std::string failure =
            FailCallAfterCall({.kind = kind, .span = span, .timing = timing}, run, totals);
        if (!failure.empty()) return failure;
      }
    }
  }
  return {};
}

}  // namespace h2d::testing
