// I1: from the start of a copy call until its completion was observed, no byte of its slot is
// written, freed or handed out. The device reads sources early, late and in pieces; its detector
// reports every store that a copy in flight could see, and each reader compares what arrived.
#include <gtest/gtest.h>

#include "h2d/tests/properties/plan_property.h"

namespace h2d::testing {
namespace {

TEST(SlotSafety, NoSlotIsTouchedWhileItsCopyMayReadIt) {
  PlanProfile profile = ProfileWith({{OpKind::kCopy, 12},
                                     {OpKind::kMirroredCopy, 12},
                                     {OpKind::kAcquire, 5},
                                     {OpKind::kSubmit, 6},
                                     {OpKind::kHold, 3},
                                     {OpKind::kCompleteNext, 4},
                                     {OpKind::kFault, 1}});
  // Few slots, so that each is wanted again while its copy is in flight.
  profile.fix_header = [](PlanHeader& header) { header.max_slots %= 3; };
  ExpectPlansHold("i01_slot_safety", profile,
                  {Mark::kRingFull, Mark::kWouldBlock, Mark::kWaitedForSlot,
                   Mark::kCompletedInBatch, Mark::kQuarantine, Mark::kQuarantineEnded,
                   Mark::kFailedCopyGuarded, Mark::kLeaseDropped, Mark::kGrowthUnderPressure});
}

}  // namespace
}  // namespace h2d::testing
