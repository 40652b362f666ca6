// I7: a call on a capturing stream is refused before anything is recorded, hits included, and no
// call of the library invalidates a capture, in any mode. Each capture has to end as a valid and
// empty graph.
#include <gtest/gtest.h>

#include "h2d/tests/properties/plan_property.h"

namespace h2d::testing {
namespace {

TEST(Capture, IsNeverJoinedNorInvalidated) {
  const PlanProfile profile = ProfileWith({{OpKind::kBeginCapture, 5},
                                           {OpKind::kEndCapture, 3},
                                           {OpKind::kMirroredCopy, 16},
                                           {OpKind::kCopy, 6},
                                           {OpKind::kRecord, 3},
                                           {OpKind::kSubmit, 4}});
  const PropertyReport report = ExpectPlansHold(
      "i07_capture", profile, {Mark::kCaptureRefused, Mark::kRingFull, Mark::kStreamWait},
      /*per_mille=*/0, {PlanMark::kStepRefused, PlanMark::kBatchRefused});
  EXPECT_GT(report.totals.refused, 0U);
}

}  // namespace
}  // namespace h2d::testing
