// Operations on what mirrors know, and the callers' own kernels that read and write destinations.
#include <algorithm>
#include <utility>

#include "h2d/tests/support/plan_run.h"

namespace h2d::testing {

void PlanRun::Read(const PlanOp& op) {
  Target& target = TargetAt(op);
  StreamUse use(streams_.At(op.stream));
  if (!use || use.slot().capturing) return;
  MutexLock lock(target.mutex);
  if (target.in_flight != 0) return;
  Count(op);
  // Mostly the buffer that copies go to now.
  const size_t other = target.buffers.size() - 1 - target.bound_index;
  ReadBuffer(target, op.variant % 8 == 7 ? other : target.bound_index, use);
}

void PlanRun::ReadBuffer(Target& target, size_t index, const StreamUse& use) {
  Buffer& buffer = target.buffers[index];
  if (!Required(buffer.OrderRead(harness_.callers_device(), use), "ordering a read")) return;
  Snapshot snapshot{
      .what = target.name, .seen = std::make_shared<Bytes>(), .allowed = buffer.model().Images()};
  ReadLater(buffer, use, std::move(snapshot));
}

// REQUIRES: the read is ordered.
void PlanRun::ReadLater(Buffer& buffer, const StreamUse& use, Snapshot snapshot) {
  if (!Required(harness_.LaunchRead(use.stream(), buffer.guarded(), buffer.guarded_bytes(),
                                    snapshot.seen),
                "launching a kernel that reads")) {
    return;
  }
  snapshots_.push_back(std::move(snapshot));
  buffer.AddReader(MarkAfterCall(use));
}

void PlanRun::ForeignWrite(const PlanOp& op) {
  Target& target = TargetAt(op);
  StreamUse use(streams_.At(op.stream));
  if (!use || use.slot().capturing) return;
  MutexLock lock(target.mutex);
  if (target.in_flight != 0) return;
  Count(op);
  Buffer& buffer = target.bound();
  if (!Required(buffer.OrderPlainWrite(harness_.callers_device(), use), "ordering a kernel"))
    return;
  Bytes bytes(target.bytes());
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(op.value + i);
  // The mirror may be told before or after; both come before the next copy.
  if (target.mirror && op.flag(0)) stager_->Invalidate(*target.mirror);
  if (!Required(harness_.LaunchWrite(use.stream(), buffer.data(), bytes),
                "launching a kernel that writes")) {
    return;
  }
  if (target.mirror && !op.flag(0)) stager_->Invalidate(*target.mirror);
  target.knowledge.Forget();
  buffer.model().Write({.offset = kGuardBytes, .bytes = std::move(bytes)});
  buffer.AddPlainWrite(MarkAfterCall(use), target.mirror.has_value());
}

void PlanRun::Record(const PlanOp& op) {
  Target& target = MirroredAt(op);
  StreamUse use(streams_.At(op.stream));
  if (!use) return;
  MutexLock lock(target.mutex);
  if (target.in_flight != 0) return;
  CallValues values = NextValues(op, target.last, target.element_bytes, target.count);
  if (values.nothing()) return;
  Count(op);
  Buffer& buffer = target.bound();
  if (use.slot().capturing) {
    const Expected<void> refused = stager_->Record(*target.mirror, values.View(), use.stream());
    if (refused ||
        (refused.error().code != ErrorCode::kFailedPrecondition && harness_.faults_fired() == 0)) {
      Fail("a record on a capturing stream was not refused (I7)");
    }
    return target.knowledge.MayHaveForgotten();
  }
  if (!Required(buffer.OrderPlainWrite(harness_.callers_device(), use), "ordering a kernel"))
    return;
  const Bytes image = values.Image(target.count);
  if (!Required(harness_.LaunchWrite(use.stream(), buffer.data(), image),
                "launching a kernel that writes")) {
    return;
  }
  buffer.model().Write({.offset = kGuardBytes, .bytes = image});
  target.last = values.values;
  ++calls_begun_;
  ++calls_now_;
  const Expected<void> recorded = stager_->Record(*target.mirror, values.View(), use.stream());
  --calls_now_;
  // Once recorded, the library keeps later calls ordered after it.
  buffer.AddPlainWrite(MarkAfterCall(use), !recorded.has_value());
  if (recorded) {
    target.knowledge.Learn(image);
    if (image.size() < target.bytes()) target.knowledge.MayHaveForgotten();
    return;
  }
  target.knowledge.Unsure();
  const ErrorCode code = recorded.error().code;
  if (code != ErrorCode::kUnavailable && harness_.faults_fired() == 0) {
    Fail("a good record failed: " + recorded.error().ToString());
  }
}

void PlanRun::Invalidate(const PlanOp& op) {
  Count(op);
  Target& target = MirroredAt(op);
  // Beside calls of other tasks as well: then nobody can say what the mirror knows after them.
  MutexLock lock(target.mutex);
  stager_->Invalidate(*target.mirror);
  if (target.in_flight != 0) {
    target.overlapped = true;
  } else {
    target.knowledge.Forget();
  }
}

void PlanRun::Matches(const PlanOp& op) {
  Target& target = MirroredAt(op);
  MutexLock lock(target.mutex);
  if (target.in_flight != 0) return;
  Count(op);
  const CallValues values = NextValues(op, target.last, target.element_bytes, target.count);
  const DeviceCalls before = CallsOfThisThread();
  const Expected<bool> matches = stager_->Matches(*target.mirror, values.View());
  const DeviceCalls asked = CallsOfThisThread() - before;
  if (!matches) return Fail("a good question failed: " + matches.error().ToString());
  if (asked.all() != 0) Fail("asking a mirror made a device call");
  const std::optional<bool> due = target.knowledge.Matches(values.Image(target.count));
  if (due && *due != *matches) {
    Fail(*matches ? "a mirror claims to hold values that it cannot know"
                  : "a mirror does not know what it was told");
  }
}

void PlanRun::Rebind(const PlanOp& op) {
  Target& target = MirroredAt(op);
  MutexLock lock(target.mutex);
  if (target.in_flight != 0) return;
  Count(op);
  const size_t other = 1 - target.bound_index;
  const Expected<void> moved = stager_->Rebind(*target.mirror, target.destination(other));
  if (!moved) return Fail("a good rebind failed: " + moved.error().ToString());
  target.bound_index = other;
  target.knowledge.Forget();
}

void PlanRun::RemakeMirror(const PlanOp& op) {
  Target& target = MirroredAt(op);
  MutexLock lock(target.mutex);
  if (target.in_flight != 0) return;
  Count(op);
  stager_->DropMirror(*target.mirror);
  for (Buffer& buffer : target.buffers) buffer.LoseMirror();
  const Expected<void> made =
      stager_->NewMirror(*target.mirror, target.destination(target.bound_index));
  if (!made) return Fail("a mirror could not be made anew: " + made.error().ToString());
  target.knowledge.Forget();
}

}  // namespace h2d::testing
