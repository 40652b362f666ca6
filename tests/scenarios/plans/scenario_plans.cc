#include "h2d/tests/scenarios/plans/scenario_plans.h"

#include <array>
#include <cstdint>
#include <utility>

namespace h2d::scenarios {
namespace {

using internal::Mark;
using testing::Edit;
using testing::OpKind;
using testing::Plan;
using testing::PlanOp;

// A plan's operations, one a line, in the words of the scenarios. Streams and mirrors are numbered
// from 0; behind the mirrors there are two plain destinations, a small and a large one.
class Script {
 public:
  // A ring of `initial` to `most` (2 to 6) slots of 256 B, and `mirrors` (1 to 4) mirrors.
  Script(uint8_t initial, uint8_t most, uint8_t mirrors = 2) : mirrors_(mirrors) {
    plan_.header.initial_slots = static_cast<uint8_t>(initial - 1);
    plan_.header.max_slots = static_cast<uint8_t>(most - 2);
    plan_.header.mirrors = static_cast<uint8_t>(mirrors - 1);
    plan_.header.wait_timeout = 1;  // short: who waits in vain need not wait long
  }

  // Which task does what follows.
  Script& Task(uint8_t task) {
    task_ = task;
    return *this;
  }
  Script& Streams(uint8_t streams) {
    plan_.header.streams = static_cast<uint8_t>(streams - 3);
    return *this;
  }
  Script& FailedGrowthWaits() {
    plan_.header.growth_failure = 1;
    return *this;
  }

  // Copies wait for a slot, those that `Try` do not. New values each time, unless an edit says how
  // they come from the last ones.
  Script& Copy(uint8_t stream, uint8_t length = 9) {
    return Add({.kind = OpKind::kCopy,
                .stream = stream,
                .target = mirrors_,
                .variant = 1,
                .length = length,
                .edit = kFresh,
                .value = Next()});
  }
  Script& LargeCopy(uint8_t stream, uint8_t length) {
    return Add({.kind = OpKind::kCopy,
                .stream = stream,
                .target = static_cast<uint8_t>(mirrors_ + 1),
                .variant = 1,
                .length = length,
                .edit = kFresh,
                .value = Next()});
  }
  Script& TryCopy(uint8_t stream) {
    Copy(stream);
    plan_.ops.back().variant = 0;
    return *this;
  }
  // Into a mirrored range, without the mirror.
  Script& CopyOver(uint8_t mirror, uint8_t stream) {
    Copy(stream);
    plan_.ops.back().target = mirror;
    return *this;
  }
  Script& Mirrored(uint8_t mirror, uint8_t stream, Edit edit = Edit::kFresh, uint8_t position = 0,
                   uint8_t pad = 0) {
    return Add({.kind = OpKind::kMirroredCopy,
                .stream = stream,
                .target = mirror,
                .variant = 1,
                .length = 4,
                .edit = static_cast<uint8_t>(edit),
                .position = position,
                .span = 1,
                .value = Next(),
                .pad = pad});
  }
  Script& Read(uint8_t target, uint8_t stream) {
    return Add({.kind = OpKind::kRead, .stream = stream, .target = target});
  }
  Script& ReadPlain(uint8_t stream) { return Read(mirrors_, stream); }
  Script& Acquire(uint8_t target, bool wait = true) {
    return Add({.kind = OpKind::kAcquire,
                .target = target,
                .variant = static_cast<uint8_t>(wait ? 1 : 0),
                .length = 4,
                .edit = kFresh,
                .value = Next()});
  }
  Script& AcquirePlain() { return Acquire(mirrors_); }
  // Written once more before it travels.
  Script& Submit(uint8_t stream) {
    return Add({.kind = OpKind::kSubmit, .stream = stream, .variant = 4});
  }
  Script& On(OpKind kind, uint8_t stream) { return Add({.kind = kind, .stream = stream}); }
  Script& Of(OpKind kind, uint8_t target, uint8_t stream = 0) {
    return Add({.kind = kind,
                .stream = stream,
                .target = target,
                .length = 4,
                .edit = kFresh,
                .value = Next()});
  }
  Script& Hold(uint8_t stream) { return On(OpKind::kHold, stream); }
  Script& Release(uint8_t stream) { return On(OpKind::kRelease, stream); }
  Script& CompleteNext(uint8_t stream) { return On(OpKind::kCompleteNext, stream); }
  Script& Advance() { return Add({.kind = OpKind::kAdvance, .length = 50}); }

  // Steps: `field` 0 tokens, 2 what kernels write, 3 scales, 4 a part of scales.
  Script& Set(uint8_t field, Edit edit = Edit::kFresh, uint8_t slab = 0) {
    return Add({.kind = OpKind::kSetField,
                .target = slab,
                .length = 5,
                .edit = static_cast<uint8_t>(edit),
                .value = Next(),
                .extra = field});
  }
  // 0 set, 1 append, 2 clear, 3 copy, 4 move, 5 swap; of rows `a` and `b`.
  Script& Row(uint8_t change, uint8_t a, uint8_t b = 0) {
    return Add({.kind = OpKind::kEditRows,
                .length = 2,
                .position = a,
                .span = b,
                .value = Next(),
                .extra = change});
  }
  Script& Step(uint8_t stream, uint8_t slab = 0) {
    return Add({.kind = OpKind::kSubmitStep, .stream = stream, .target = slab, .variant = 1});
  }
  Script& LegacyStep() {
    Step(0);
    plan_.ops.back().variant |= 0xe0;
    return *this;
  }
  Script& ReadSlab(uint8_t stream, uint8_t slab = 0) {
    return Add({.kind = OpKind::kReadSlab, .stream = stream, .target = slab});
  }
  Script& Forget(uint8_t field) { return Add({.kind = OpKind::kForgetField, .extra = field}); }

  // A bit of `targets` for each destination; those of `plain` without their mirrors.
  Script& Batch(uint8_t targets, uint8_t stream, Edit edit = Edit::kFresh, uint8_t plain = 0) {
    return Add({.kind = OpKind::kBatch,
                .stream = stream,
                .target = targets,
                .variant = 1,
                .length = 3,
                .edit = static_cast<uint8_t>(edit),
                .value = 0xff,
                .pad = Next(),
                .extra = plain});
  }
  Script& LegacyBatch(uint8_t targets) {
    Batch(targets, 0);
    plan_.ops.back().variant |= 0xe0;
    return *this;
  }

  operator Plan() const { return plan_; }

 private:
  static constexpr auto kFresh = static_cast<uint8_t>(Edit::kFresh);

  Script& Add(PlanOp op) {
    op.task = task_;
    plan_.ops.push_back(op);
    return *this;
  }
  uint8_t Next() { return value_ = static_cast<uint8_t>(value_ + 4); }

  Plan plan_;
  uint8_t mirrors_;
  uint8_t task_ = 0;
  uint8_t value_ = 0;
};

std::vector<ScenarioPlan> SlotScenarios() {
  return {
      {"a ring behind a stream that stands still",
       "1, 4, 5, 14",
       Script(2, 2)
           .Hold(0)
           .Copy(0)
           .ReadPlain(0)
           .Mirrored(0, 0)
           .TryCopy(0)
           .Acquire(1, false)
           .Copy(0)
           .Release(0)
           .Copy(0)
           .ReadPlain(0)
           .Mirrored(1, 0)
           .Read(1, 0),
       {Mark::kRingFull, Mark::kWouldBlock}},
      {"slots written in place",
       "2",
       Script(2, 2)
           .AcquirePlain()
           .Acquire(0)
           .Submit(0)
           .Submit(1)
           .ReadPlain(0)
           .Read(0, 1)
           .Acquire(1)
           .On(OpKind::kDrop, 0)
           .AcquirePlain()
           .Submit(0),
       {Mark::kLeaseDropped}},
      {"slots freed copy by copy",
       "3, 7",
       Script(2, 2)
           .Hold(0)
           .Copy(0)
           .Mirrored(0, 0)
           .CompleteNext(0)
           .TryCopy(1)
           .CompleteNext(0)
           .CompleteNext(0)
           .TryCopy(1)
           .ReadPlain(1)
           .Release(0)
           .Mirrored(0, 1),
       {Mark::kRingFull}},
      {"more streams than slots",
       "9",
       Script(2, 2)
           .Streams(5)
           .Copy(0)
           .Copy(1)
           .Copy(2)
           .Copy(3)
           .Copy(4)
           .ReadPlain(4)
           .Copy(3)
           .Mirrored(0, 2)
           .Mirrored(1, 1)
           .Copy(0)
           .ReadPlain(0),
       {Mark::kRingFull, Mark::kWaitedForSlot}},
      {"a stuck stream beside a fast one",
       "10, 12",
       Script(3, 3)
           .Hold(0)
           .Mirrored(0, 0)
           .Copy(1)
           .Copy(1)
           .Copy(1)
           .ReadPlain(1)
           .Copy(1)
           .Mirrored(1, 1)
           .Release(0)
           .Mirrored(0, 0)
           .Read(0, 0),
       {Mark::kRingFull, Mark::kWaitedForSlot}},
      {"a destroyed stream and its handle",
       "11",
       Script(2, 2)
           .Mirrored(0, 0)
           .On(OpKind::kRemakeStream, 0)
           .Mirrored(0, 0, Edit::kOne)
           .Copy(0)
           .On(OpKind::kRemakeStream, 0)
           .Copy(0)
           .Mirrored(0, 0)
           .Read(0, 0),
       {Mark::kStreamWait}},
      {"two tasks, one mirror, a small ring",
       "13, 15",
       Script(2, 2, 1)
           .Mirrored(0, 0)
           .Mirrored(0, 0, Edit::kOne)
           .Copy(0)
           .Acquire(0)
           .Submit(0)
           .Task(1)
           .Mirrored(0, 1)
           .Copy(1)
           .Mirrored(0, 1, Edit::kSame)
           .Acquire(0)
           .Submit(1)
           .Read(0, 1),
       {Mark::kStreamWait}},
      {"sizes of every kind in little memory",
       "24, 26",
       Script(1, 4)
           .Hold(1)
           .LargeCopy(1, 159)
           .Copy(0, 1)
           .LargeCopy(0, 70)
           .LargeCopy(0, 100)
           .Copy(0, 9)
           .LargeCopy(0, 159)
           .LargeCopy(0, 1)
           .Release(1)
           .LargeCopy(0, 159),
       {Mark::kGrowthUnderPressure, Mark::kRingFull}},
      {"growth that makes do when it fails",
       "27, 28, 29, 31",
       Script(1, 4)
           .FailedGrowthWaits()
           .Copy(0)
           .Copy(1)
           .Mirrored(0, 2)
           .Hold(2)
           .Mirrored(1, 2)
           .Copy(1)
           .AcquirePlain()
           .Submit(1)
           .Release(2)
           .Copy(0)
           .ReadPlain(0),
       {Mark::kGrowthUnderPressure}},
      {"a steady state",
       "25",
       Script(2, 2)
           .Mirrored(0, 0)
           .Mirrored(1, 0)
           .Mirrored(0, 0, Edit::kSame)
           .Mirrored(1, 0, Edit::kOne)
           .Advance()
           .Mirrored(0, 0, Edit::kSame)
           .Copy(0)
           .Advance()
           .Mirrored(1, 0, Edit::kSame)
           .Read(1, 0),
       {Mark::kSkip}},
  };
}

std::vector<ScenarioPlan> MirrorScenarios() {
  return {
      {"captures beside the steps",
       "16, 17",
       Script(2, 2)
           .Mirrored(0, 0)
           .Mirrored(1, 1)
           .On(OpKind::kBeginCapture, 0)
           .Copy(0)
           .Mirrored(0, 0, Edit::kSame)
           .Of(OpKind::kRecord, 0, 0)
           .Copy(1)
           .Copy(1)
           .Copy(1)
           .Mirrored(0, 1, Edit::kOne)
           .Set(0)
           .Step(0)
           .Batch(3, 0)
           .On(OpKind::kEndCapture, 0)
           .Mirrored(0, 0)
           .Step(0)
           .Batch(3, 0),
       {Mark::kCaptureRefused}},
      {"a destination that others write",
       "20",
       Script(2, 3)
           .Mirrored(0, 0)
           .Of(OpKind::kForeignWrite, 0, 1)
           .Mirrored(0, 0, Edit::kSame)
           .Read(0, 0)
           .Of(OpKind::kRecord, 0, 1)
           .Mirrored(0, 0, Edit::kSame)
           .Read(0, 0)
           .CopyOver(0, 1)
           .Mirrored(0, 0, Edit::kSame)
           .Read(0, 0)
           .Of(OpKind::kInvalidate, 0)
           .Mirrored(0, 1, Edit::kSame),
       {Mark::kMirrorRecorded, Mark::kForgottenByPlainCopy}},
      {"buffers that alternate",
       "20",
       Script(2, 3)
           .Mirrored(0, 0)
           .Of(OpKind::kRebind, 0)
           .Mirrored(0, 1)
           .Of(OpKind::kRebind, 0)
           .Mirrored(0, 0, Edit::kSame)
           .Read(0, 0)
           .Of(OpKind::kRemakeMirror, 0)
           .Mirrored(0, 1, Edit::kSame)
           .Read(0, 1),
       {Mark::kRebind}},
      {"tables edited in part, rows that shrink, bits of equal values",
       "21, 22, 23",
       Script(2, 3)
           .Mirrored(0, 0)
           .Mirrored(0, 0, Edit::kOne, 2)
           .Mirrored(0, 1, Edit::kBothEnds)
           .Mirrored(0, 1, Edit::kShrink, 0, 1)
           .Read(0, 1)
           .Mirrored(0, 0, Edit::kGrow, 0, 1)
           .Mirrored(0, 0, Edit::kFlipZero, 0, 1)
           .Mirrored(0, 0, Edit::kNan, 1, 1)
           .Mirrored(0, 0, Edit::kNan, 1, 1)
           .Mirrored(0, 1, Edit::kOne, 1, 1)
           .Read(0, 1),
       {Mark::kPaddingDiffers, Mark::kTrimBothEnds}},
      {"hits and copies across streams",
       "20",
       Script(3, 4)
           .Hold(0)
           .Mirrored(0, 0)
           .Mirrored(0, 1, Edit::kSame)
           .Read(0, 1)
           .Mirrored(0, 2, Edit::kOne)
           .Mirrored(0, 2, Edit::kSame)
           .Of(OpKind::kInvalidate, 0)
           .Mirrored(0, 1, Edit::kSame)
           .Release(0)
           .Read(0, 1),
       {Mark::kSkipAcrossStreams, Mark::kStreamWait, Mark::kForgetInFlight}},
      {"leases that outlive the stager",
       "32",
       Script(2, 2)
           .AcquirePlain()
           .Mirrored(0, 0)
           .Hold(1)
           .Mirrored(1, 0)
           .Release(1)
           .Submit(0)
           .AcquirePlain(),
       {Mark::kLeaseOutlivedStager}},
  };
}

std::vector<ScenarioPlan> StepScenarios() {
  return {
      {"steps that change in part",
       "",
       Script(2, 2)
           .Set(0)
           .Set(3)
           .Step(0)
           .ReadSlab(0)
           .Set(0, Edit::kSame)
           .Step(0)
           .Set(0, Edit::kOne)
           .Set(3, Edit::kOne)
           .Step(1)
           .ReadSlab(1)
           .Set(4, Edit::kSame)
           .Step(0)
           .Forget(1)
           .Set(0, Edit::kSame)
           .Step(1)
           .ReadSlab(1),
       {Mark::kStepUnchanged, Mark::kStepApart, Mark::kStreamWait}},
      {"rows of a table across streams",
       "21, 22",
       Script(2, 3)
           .Row(0, 0)
           .Row(1, 0)
           .Step(0)
           .Row(4, 0, 1)
           .Row(0, 2)
           .Step(1)
           .Row(5, 1, 2)
           .Row(3, 1, 0)
           .Step(0)
           .ReadSlab(0)
           .Row(2, 1)
           .Row(2, 2)
           .Step(1)
           .ReadSlab(1),
       {Mark::kStreamWait}},
      {"a field that the graph writes",
       "",
       Script(2, 2)
           .Set(2)
           .Set(0)
           .Set(3)
           .Step(0)
           .Of(OpKind::kGraphWrite, 0, 1)
           .Set(0, Edit::kOne)
           .Set(3, Edit::kOne)
           .Step(1)
           .ReadSlab(1)
           .Set(2, Edit::kSame)
           .Step(0)
           .ReadSlab(0),
       {Mark::kStepSplit}},
      {"a step that waits for a slot",
       "4",
       Script(2, 2)
           .Set(0)
           .Step(0)
           .Hold(1)
           .Copy(1)
           .Mirrored(0, 1)
           .Set(3)
           .Step(0)
           .Task(1)
           .Release(1)
           .Set(0, Edit::kOne)
           .Step(1)
           .ReadSlab(1),
       {Mark::kStepFoundAnew}},
      {"a slab that others write, a writer made anew",
       "20",
       Script(2, 3)
           .Set(0)
           .Step(0)
           .Of(OpKind::kPlainToSlab, 0, 1)
           .Set(0, Edit::kSame)
           .Step(0)
           .ReadSlab(0)
           .Of(OpKind::kRemakeStep, 0)
           .Set(0)
           .Step(1)
           .Set(0, Edit::kFresh, 1)
           .Step(1, 1)
           .ReadSlab(0)
           .ReadSlab(0, 1),
       {Mark::kStepOverwritten}},
      {"steps and batches on the legacy stream",
       "",
       Script(3, 4)
           .Set(0)
           .Set(3)
           .LegacyStep()
           .ReadSlab(0)
           .Set(0, Edit::kOne)
           .Set(3, Edit::kOne)
           .Step(0)
           .LegacyBatch(0x0f)
           .Batch(0x0f, 1)
           .Read(0, 1)
           .LegacyStep()
           .LegacyBatch(0x03),
       {Mark::kStepSeparate, Mark::kBatchSeparate, Mark::kBatch}},
      {"batches through mirrors and past them",
       "20",
       Script(2, 3, 3)
           .Batch(0x07, 0)
           .Batch(0x07, 1)
           .Read(0, 1)
           .Batch(0x07, 1, Edit::kSame)
           .Batch(0x1b, 0, Edit::kOne, 0x02)
           .Mirrored(1, 0, Edit::kSame)
           .Read(1, 0)
           .Batch(0x07, 1, Edit::kOne)
           .Read(2, 1),
       {Mark::kBatch, Mark::kStreamWait, Mark::kForgottenByPlainCopy}},
      {"a batch that waits for a slot beside another task",
       "13",
       Script(2, 2, 2)
           .Hold(1)
           .Copy(1)
           .Mirrored(0, 1)
           .Batch(0x03, 0)
           .Read(1, 0)
           .Task(1)
           .Advance()
           .Release(1)
           .Mirrored(0, 1, Edit::kOne)
           .Batch(0x03, 1, Edit::kOne)
           .Read(0, 1),
       {Mark::kBatchComparedAnew}},
  };
}

}  // namespace

const std::vector<ScenarioPlan>& ScenarioPlans() {
  static const auto* const all = [] {
    auto* const plans = new std::vector<ScenarioPlan>(SlotScenarios());
    for (ScenarioPlan& plan : MirrorScenarios()) plans->push_back(std::move(plan));
    for (ScenarioPlan& plan : StepScenarios()) plans->push_back(std::move(plan));
    return plans;
  }();
  return *all;
}

testing::Plan OnUnkindDevice(testing::Plan plan) {
  // All but enqueues that block, which a held stream would block for ever.
  plan.header.adversaries = {0x7f, 0x07};
  uint8_t number = 0;
  for (PlanOp& op : plan.ops) op.choices = {++number, 0x5a, 0xc3, 0x03};
  return plan;
}

}  // namespace h2d::scenarios
