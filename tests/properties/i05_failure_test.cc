// I5: a call that returns an error has issued nothing, or made the mirror forget what it may have
// overwritten; an error is never a completion; and after each error the next good call works. Every
// call of the device fails somewhere, before it or after it did its work, once or for a while.
#include <gtest/gtest.h>

#include "h2d/tests/properties/plan_property.h"

namespace h2d::testing {
namespace {

TEST(Failure, AnErrorIssuesNothingOrForgetsAndTheNextGoodCallWorks) {
  PlanProfile profile =
      ProfileWith({{OpKind::kFault, 6}, {OpKind::kCopy, 6}, {OpKind::kMirroredCopy, 16}});
  // A ring that begins small: failures meet a full ring and a growing one.
  profile.fix_header = [](PlanHeader& header) { header.initial_slots = 0; };
  profile.fix_op = [](PlanOp& op) {
    if (op.position % 2 == 0) FailNextRecordOften(op);
  };
  const PropertyReport report = ExpectPlansHold(
      "i05_failure", profile,
      {Mark::kQuarantine, Mark::kQuarantineEnded, Mark::kFailedCopyGuarded, Mark::kOriginCovered,
       Mark::kOriginUnknown, Mark::kGrowthRefused, Mark::kStepNotSent, Mark::kBatchNotSent},
      /*per_mille=*/0, {PlanMark::kStepAfterFailure, PlanMark::kBatchAfterFailure});
  EXPECT_GT(report.totals.device_errors, 0U);
}

TEST(Failure, ACallThatCanNeverWorkGetsItsErrorAndChangesNothing) {
  const PlanProfile profile = ProfileWith({{OpKind::kBadCall, 12}, {OpKind::kBeginCapture, 3}});
  const PropertyReport report =
      ExpectPlansHold("i05_bad_calls", profile, {Mark::kCaptureRefused, Mark::kSkip});
  EXPECT_GT(report.totals.ops[static_cast<size_t>(OpKind::kBadCall)], 0U);
}

}  // namespace
}  // namespace h2d::testing
