// I6: in steady state nothing allocates, frees or synchronises; a mirror hit takes no slot and
// never waits; the only wait is for a slot. Streams are held, so that a call that waits for one of
// them is seen, and every call's requests to the device are counted.
#include <gtest/gtest.h>

#include "h2d/tests/properties/plan_property.h"

namespace h2d::testing {
namespace {

TEST(NoStall, NothingWaitsForAStreamThatStandsStill) {
  PlanProfile profile = ProfileWith({{OpKind::kHold, 6},
                                     {OpKind::kRelease, 2},
                                     {OpKind::kCompleteNext, 3},
                                     {OpKind::kMirroredCopy, 16},
                                     {OpKind::kCopy, 6}});
  profile.fix_header = [](PlanHeader& header) { header.adversaries[0] &= 0x7f; };
  const PropertyReport report =
      ExpectPlansHold("i06_no_stall", profile,
                      {Mark::kRingFull, Mark::kWouldBlock, Mark::kWaitedForSlot,
                       Mark::kComparedAnew, Mark::kGrowthUnderPressure, Mark::kCompletedInBatch,
                       Mark::kStepFoundAnew, Mark::kBatchComparedAnew},
                      /*per_mille=*/0, {PlanMark::kStepWouldBlock, PlanMark::kBatchWouldBlock});
  EXPECT_GT(report.totals.unavailable, 0U);
}

TEST(NoStall, ARingThatIsLargeEnoughNeverAllocatesAgain) {
  PlanProfile profile = ProfileWith({{OpKind::kCopy, 8}, {OpKind::kMirroredCopy, 16}});
  // All slots are there from the start, each larger than the largest value, and all the memory that
  // the limit allows: the runner demands that no call allocates then.
  profile.fix_header = [](PlanHeader& header) {
    header.slot_bytes = 2;
    header.initial_slots = 4;
    header.max_slots = 3;
    header.pinned_limit = 0;
  };
  const PropertyReport report = ExpectPlansHold("i06_steady_state", profile, {Mark::kRingFull});
  EXPECT_GT(report.totals.issued, 0U);
}

}  // namespace
}  // namespace h2d::testing
