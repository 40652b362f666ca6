// I10: pinned memory never passes its limit and slots never pass theirs; and memory that is idle in
// one size never keeps another size from being served within the limit: at its end every plan takes
// the whole limit as one slot.
#include <gtest/gtest.h>

#include "h2d/tests/properties/plan_property.h"

namespace h2d::testing {
namespace {

TEST(Bounds, LimitsHoldAndIdleMemoryServesEverySize) {
  PlanProfile profile = ProfileWith({{OpKind::kCopy, 14},
                                     {OpKind::kAcquire, 8},
                                     {OpKind::kSubmit, 5},
                                     {OpKind::kDrop, 4},
                                     {OpKind::kBadCall, 2},
                                     {OpKind::kFault, 1}});
  // Little memory in small slots, and values of many sizes.
  profile.fix_header = [](PlanHeader& header) {
    header.slot_bytes = 1;
    header.pinned_limit = 0;
    header.initial_slots = 0;
  };
  ExpectPlansHold("i10_bounds", profile,
                  {Mark::kGrowth, Mark::kGrowthUnderPressure, Mark::kSlabRetired, Mark::kRingFull,
                   Mark::kGrowthRefused});
}

}  // namespace
}  // namespace h2d::testing
