// I8: any number of threads share a stager, and the calls on one mirror are totally ordered. Tasks
// are interleaved at every lock, atomic and call of the device; where their calls on one mirror
// overlap, a reader may see the outcome of any order of them, and of no mixture.
#include <gtest/gtest.h>

#include "h2d/tests/properties/plan_property.h"

namespace h2d::testing {
namespace {

TEST(Threads, CallsOnOneMirrorTakeEffectOneAfterAnother) {
  PlanProfile profile = ProfileWith({{OpKind::kMirroredCopy, 24},
                                     {OpKind::kRead, 8},
                                     {OpKind::kInvalidate, 3},
                                     {OpKind::kAcquire, 3},
                                     {OpKind::kSubmit, 4}});
  // Three tasks on one or two mirrors.
  profile.fix_header = [](PlanHeader& header) {
    header.tasks = 1;
    header.mirrors %= 2;
    header.adversaries[1] |= 0x02;  // which task runs next
  };
  // Seldom enough that another task gets far while one stands between two calls.
  profile.fix_op = [](PlanOp& op) {
    op.choices[3] = static_cast<uint8_t>((op.choices[3] & 0xf8) + op.extra % 3);
  };
  const PropertyReport report = ExpectPlansHold(
      "i08_threads", profile, {Mark::kComparedAnew, Mark::kStreamWait, Mark::kRingFull});
  EXPECT_GT(report.totals.overlapped, report.plans);
}

}  // namespace
}  // namespace h2d::testing
