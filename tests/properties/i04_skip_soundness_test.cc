// I4: a skipped or trimmed copy cannot be told from a full one by any reader that a full copy on
// the stream passed would have been ordered before. The callers order readers after the last call's
// stream alone and never after earlier copies: that is left to the library.
#include <gtest/gtest.h>

#include "h2d/tests/properties/plan_property.h"

namespace h2d::testing {
namespace {

// Mostly the same values again, on changing streams.
void RepeatOften(PlanOp& op) {
  if (op.extra % 3 == 0) op.edit = static_cast<uint8_t>(Edit::kSame);
}

TEST(SkipSoundness, NoOrderedReaderCanTellASkippedOrTrimmedCopyFromAFullOne) {
  PlanProfile profile = ProfileWith({{OpKind::kMirroredCopy, 24},
                                     {OpKind::kRead, 10},
                                     {OpKind::kCopy, 2},
                                     {OpKind::kForeignWrite, 2},
                                     {OpKind::kRemakeStream, 2}});
  profile.fix_op = RepeatOften;
  ExpectPlansHold(
      "i04_skip_soundness", profile,
      {Mark::kSkip, Mark::kSkipAcrossStreams, Mark::kTrimFront, Mark::kTrimBack,
       Mark::kTrimBothEnds, Mark::kStreamWait, Mark::kStreamWaitedBefore, Mark::kOriginComplete,
       Mark::kForgetInFlight, Mark::kForgottenByPlainCopy, Mark::kMirrorRecorded, Mark::kRebind,
       Mark::kStepUnchanged, Mark::kStepCovered, Mark::kStepSplit, Mark::kBatchSkipped},
      /*per_mille=*/0,
      {PlanMark::kStepAcrossStreams, PlanMark::kDeviceFieldKept, PlanMark::kBatchHitBesideCopy});
}

TEST(SkipSoundness, ForgettingDropsContentButNeverOrder) {
  PlanProfile profile = ProfileWith({{OpKind::kMirroredCopy, 20},
                                     {OpKind::kInvalidate, 6},
                                     {OpKind::kRebind, 4},
                                     {OpKind::kRecord, 4},
                                     {OpKind::kForeignWrite, 4},
                                     {OpKind::kFault, 4},
                                     {OpKind::kRead, 8}});
  profile.fix_op = [](PlanOp& op) {
    RepeatOften(op);
    FailNextRecordOften(op);
  };
  ExpectPlansHold("i04_forgetting", profile,
                  {Mark::kForgetInFlight, Mark::kMirrorRecorded, Mark::kRebind,
                   Mark::kOriginCovered, Mark::kOriginUnknown});
}

}  // namespace
}  // namespace h2d::testing
