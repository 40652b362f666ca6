// I2: the library issues copies, event operations and stream waits, and one copy at most for a
// call. `Device` has nothing else to issue; the calls of every operation are counted on their way
// to it.
#include <gtest/gtest.h>

#include "h2d/tests/properties/plan_property.h"

namespace h2d::testing {
namespace {

TEST(CopyOnly, ACallEnqueuesOneCopyAtMostAndNothingElse) {
  // Large and small values, trimmed at both ends: what could tempt into two copies.
  const PlanProfile profile = ProfileWith({{OpKind::kMirroredCopy, 16},
                                           {OpKind::kCopy, 6},
                                           {OpKind::kSubmit, 4},
                                           {OpKind::kAcquire, 3}});
  const PropertyReport report = ExpectPlansHold(
      "i02_copy_only", profile, {Mark::kTrimFront, Mark::kTrimBack, Mark::kTrimBothEnds});
  EXPECT_GT(report.totals.issued, 0U);
}

}  // namespace
}  // namespace h2d::testing
