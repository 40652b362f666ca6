// I3: a reader ordered after a copy sees the values, then the padding, bit for bit, and no byte
// outside. Each destination has guard bytes on both sides, which every reader compares as well.
#include <gtest/gtest.h>

#include "h2d/tests/properties/plan_property.h"

namespace h2d::testing {
namespace {

TEST(Content, AReaderSeesTheValuesThenThePaddingAndNothingElseChanges) {
  PlanProfile profile = ProfileWith(
      {{OpKind::kCopy, 12}, {OpKind::kMirroredCopy, 8}, {OpKind::kRead, 12}, {OpKind::kSubmit, 4}});
  // Growing and shrinking values, with and without padding; none at all among them.
  profile.fix_op = [](PlanOp& op) {
    if (op.extra % 2 == 0) {
      op.edit = static_cast<uint8_t>(op.extra % 4 == 0 ? Edit::kShrink : Edit::kGrow);
    }
  };
  const PropertyReport report =
      ExpectPlansHold("i03_content", profile, {Mark::kPaddingDiffers, Mark::kTrimBack});
  EXPECT_GT(report.totals.reads_checked, report.plans);
}

}  // namespace
}  // namespace h2d::testing
