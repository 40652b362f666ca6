// I9: destruction waits for the library's own copies alone, then hands its memory back. Each plan
// ends with copies in flight and a lease that outlives the stager; the device reports memory that
// is freed under a copy, and the runner memory that is not handed back.
#include <gtest/gtest.h>

#include "h2d/tests/properties/plan_property.h"

namespace h2d::testing {
namespace {

TEST(EndOfLife, WaitsForItsOwnCopiesAndHandsItsMemoryBack) {
  const PlanProfile profile =
      ProfileWith({{OpKind::kCopy, 12}, {OpKind::kAcquire, 4}, {OpKind::kRemakeMirror, 3}});
  ExpectPlansHold("i09_end_of_life", profile, {Mark::kLeaseOutlivedStager, Mark::kLeaseDropped});
}

}  // namespace
}  // namespace h2d::testing
