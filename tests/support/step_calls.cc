// What reaches the slab of a step: submits, plain copies and the callers' own kernels.
#include <set>
#include <utility>

#include "h2d/tests/support/plan_run.h"

namespace h2d::testing {
namespace {

// The slab as it is once everything that was asked has arrived.
ByteModel AfterAsked(const Slab& slab) {
  ByteModel after = slab.content;
  for (const StepOracle::Asked& write : slab.oracle->asked()) {
    after.Write(Slab::kGuardBytes + write.offset, write.bytes);
  }
  return after;
}

// How many bytes of the slab change for certain, and whether none can.
struct Change {
  uint64_t certain = 0;
  bool none = true;
};

Change ChangeOf(const Slab& slab) {
  Change change;
  std::set<size_t> asked;
  for (const StepOracle::Asked& write : slab.oracle->asked()) {
    for (size_t i = 0; i < write.bytes.size(); ++i) {
      asked.insert(Slab::kGuardBytes + write.offset + i);
    }
  }
  const Bytes after = AfterAsked(slab).bytes();
  for (const size_t at : asked) {
    if (!slab.content.May(at, after[at])) ++change.certain;
    if (!slab.content.Must(at, after[at])) change.none = false;
  }
  return change;
}

}  // namespace

void PlanRun::SubmitStep(const PlanOp& op) {
  Slab* const slab = SlabAt(op);
  StreamUse use(StepStreamAt(op));
  if (slab == nullptr || !use) return;
  MutexLock lock(slab->mutex);
  Count(op);
  SubmitSlab(*slab, use, op.flag(0));
}

// REQUIRES: the slab is locked.
void PlanRun::SubmitSlab(Slab& slab, const StreamUse& use, bool wait) {
  if (!use.slot().capturing &&
      !Required(slab.buffer.OrderMirroredWrite(harness_.callers_device(), use),
                "ordering a step")) {
    return;
  }
  const uint64_t begun = slab.buffer.Tick();
  const FinishedCall done = Observed(use, wait, [&] {
    return wait ? slab.writer->Submit(use.stream()) : slab.writer->TrySubmit(use.stream());
  });
  CheckStep(slab, done);
  EndStep(slab, use, done, begun);
}

void PlanRun::CheckStep(const Slab& slab, const FinishedCall& done) {
  CountOutcome(done);
  CheckAsked(done);
  CheckLimits();
  if (!done.outcome) return CheckError(done, false);
  CheckTransfer(done, slab.oracle->asked_bytes());
  const uint64_t sent = done.outcome->bytes_sent;
  if (slab.oracle->must_skip() && done.outcome->kind != CopyOutcome::Kind::kSkipped) {
    return Fail("an unchanged step took a slot (I6)");
  }
  if (done.would_block()) return;
  if (slab.oracle->must_travel() && !done.enqueued()) {
    return Fail(
        "a step was skipped although something was set of which the slab is not known to "
        "hold it (I4)");
  }
  const Change change = ChangeOf(slab);
  if (!done.enqueued() && !change.none) {
    return Fail("a step was skipped although its slab may hold other values (I4)");
  }
  if (sent < change.certain || sent > fields_->layout.slab_bytes()) {
    Fail("a step sent " + std::to_string(sent) + " B of a slab of " +
         std::to_string(fields_->layout.slab_bytes()) + " B of which " +
         std::to_string(change.certain) + " B change (I4)");
  }
}

void PlanRun::EndStep(Slab& slab, const StreamUse& use, const FinishedCall& done, uint64_t begun) {
  if (done.refused()) return Reach(PlanMark::kStepRefused);
  slab.oracle->MayNotice();
  if (done.would_block()) return Reach(PlanMark::kStepWouldBlock);
  if (!done.outcome) {
    slab.failed = true;
    if (!done.may_have_written()) return;
    for (const StepOracle::Asked& write : slab.oracle->asked()) {
      slab.content.MayWrite(Slab::kGuardBytes + write.offset, write.bytes);
    }
    slab.last_stream = &use.slot();
    return slab.buffer.AddPossibleWrite(MarkAfterCall(use), true);
  }
  slab.content = AfterAsked(slab);
  slab.buffer.AddMirroredWrite(MarkAfterCall(use), begun, done.enqueued());
  const bool state_sent = slab.oracle->asks(StepFields::kState);
  slab.oracle->Sent();
  if (!done.enqueued()) return;
  if (std::exchange(slab.failed, false)) Reach(PlanMark::kStepAfterFailure);
  if (slab.last_stream != nullptr && slab.last_stream != &use.slot()) {
    Reach(PlanMark::kStepAcrossStreams);
  }
  slab.last_stream = &use.slot();
  if (slab.kernel_wrote && !state_sent) Reach(PlanMark::kDeviceFieldKept);
  if (state_sent) slab.kernel_wrote = false;
}

// A kernel writes the field that is its own, or another one, which the writer is told to forget.
void PlanRun::GraphWrite(const PlanOp& op) {
  Slab* const slab = SlabAt(op);
  StreamUse use(streams_.At(op.stream));
  if (slab == nullptr || !use || use.slot().capturing) return;
  MutexLock lock(slab->mutex);
  Count(op);
  const bool own = op.extra % 3 != 2;
  const size_t field = own ? StepFields::kState : StepFields::kScales;
  const StepLayout::FieldInfo& info = fields_->info(field);
  Bytes bytes(info.bytes());
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(op.value + i);
  Buffer& buffer = slab->buffer;
  if (!Required(buffer.OrderPlainWrite(harness_.callers_device(), use), "ordering a kernel") ||
      !Required(harness_.LaunchWrite(use.stream(), buffer.data() + info.offset, bytes),
                "launching a kernel that writes")) {
    return;
  }
  slab->content.Write(Slab::kGuardBytes + info.offset, bytes);
  buffer.AddPlainWrite(MarkAfterCall(use), true);
  slab->kernel_wrote = slab->kernel_wrote || own;
  if (own) return;
  slab->writer->Invalidate(fields_->scales);
  slab->oracle->Forget(field);
}

// Another path of the library writes the first field.
void PlanRun::PlainToSlab(const PlanOp& op) {
  Slab* const slab = SlabAt(op);
  StreamUse use(StepStreamAt(op));
  if (slab == nullptr || !use) return;
  MutexLock lock(slab->mutex);
  Count(op);
  const StepLayout::FieldInfo& info = fields_->info(StepFields::kTokens);
  const CallValues values{.element_bytes = info.element_bytes,
                          .values = Bytes(info.bytes(), op.value)};
  Buffer& buffer = slab->buffer;
  if (!use.slot().capturing &&
      !Required(buffer.OrderPlainWrite(harness_.callers_device(), use), "ordering a copy")) {
    return;
  }
  const Destination destination{buffer.data() + info.offset, info.row_elements, info.element_bytes};
  const bool wait = op.flag(0);
  const FinishedCall done = Observed(
      use, wait, [&] { return stager_->Copy(destination, values.View(), use.stream(), wait); });
  CheckCall(info.row_elements, values, done);
  if (done.enqueued()) {
    slab->content.Write(Slab::kGuardBytes + info.offset, values.values);
    buffer.AddPlainWrite(MarkAfterCall(use), true);
    slab->oracle->Overwritten();
  } else if (done.may_have_written()) {
    slab->content.MayWrite(Slab::kGuardBytes + info.offset, values.values);
    buffer.AddPossibleWrite(MarkAfterCall(use), false);
    slab->oracle->Overwritten();
  }
}

void PlanRun::ReadStep(const PlanOp& op) {
  Slab* const slab = SlabAt(op);
  StreamUse use(streams_.At(op.stream));
  if (slab == nullptr || !use || use.slot().capturing) return;
  MutexLock lock(slab->mutex);
  Count(op);
  ReadSlab(*slab, use);
}

// REQUIRES: the slab is locked, or no task runs.
void PlanRun::ReadSlab(Slab& slab, const StreamUse& use) {
  Buffer& buffer = slab.buffer;
  if (!Required(buffer.OrderRead(harness_.callers_device(), use), "ordering a read")) return;
  Snapshot snapshot{.what = "a slab", .seen = std::make_shared<Bytes>(), .content = slab.content};
  ReadLater(buffer, use, std::move(snapshot));
}

// What was set and not sent can be sent now; then the slab holds what was asked, all of it.
void PlanRun::FinishSteps() {
  StreamUse use(streams_.At(0));
  for (Slab& slab : slabs_) {
    SubmitSlab(slab, use, true);
    // A step whose record failed waits for a record on its stream, which may be gone.
    const uint64_t remade = result_.counts.ops[static_cast<size_t>(OpKind::kRemakeStream)];
    if (!slab.oracle->asked().empty() && (harness_.faults_fired() == 0 || remade == 0)) {
      Fail("a step could not be sent after all had completed (I5)");
    }
    ReadSlab(slab, use);
  }
}

}  // namespace h2d::testing
