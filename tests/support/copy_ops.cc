// Operations that stage: copies, and slots that are written in place.
#include <algorithm>
#include <cstring>
#include <utility>

#include "h2d/tests/support/plan_run.h"

namespace h2d::testing {
namespace {

constexpr size_t kMaxLeasesOfTask = 2;

WriteEffect EffectOf(const Target& target, const CallValues& values, bool maybe) {
  return {.offset = kGuardBytes, .bytes = values.Image(target.count), .maybe = maybe};
}

}  // namespace

FinishedCall PlanRun::Observed(bool wait, const CopyCall& call) {
  const uint64_t begun = ++calls_begun_;
  const bool alone = calls_now_++ == 0;
  const DeviceCalls before = CallsOfThisThread();
  Expected<CopyOutcome> outcome = call();
  const DeviceCalls asked = CallsOfThisThread() - before;
  --calls_now_;
  return {.outcome = std::move(outcome),
          .asked = asked,
          .wait = wait,
          .alone = alone && begun == calls_begun_};
}

FinishedCall PlanRun::Observed(const StreamUse& use, bool wait, const CopyCall& call) {
  FinishedCall done = Observed(wait, call);
  done.capturing = use.slot().capturing;
  done.legacy = &use.slot() == &legacy_;
  return done;
}

void PlanRun::Copy(const PlanOp& op) {
  Target& target = TargetAt(op);
  StreamUse use(streams_.At(op.stream));
  if (!use) return;
  Count(op);
  const bool wait = op.flag(0);
  const CallValues values = NextValues(op, target.last, target.element_bytes, target.count);
  PlainCall(target, use, values, wait, [&] {
    return stager_->Copy(target.destination(target.bound_index), values.View(), use.stream(), wait);
  });
}

void PlanRun::MirroredCopy(const PlanOp& op) {
  Target& target = MirroredAt(op);
  StreamUse use(streams_.At(op.stream));
  if (!use) return;
  Count(op);
  const bool wait = op.flag(0);
  const CallValues values = NextValues(op, target.last, target.element_bytes, target.count);
  MirroredCall(target, use, values, wait, [&] {
    return stager_->CopyMirrored(*target.mirror, values.View(), use.stream(), wait);
  });
}

void PlanRun::PlainCall(Target& target, const StreamUse& use, const CallValues& values, bool wait,
                        const CopyCall& call) {
  MutexLock lock(target.mutex);
  if (target.in_flight != 0) return;
  Buffer& buffer = target.bound();
  Device& device = harness_.callers_device();
  if (!use.slot().capturing && !Required(buffer.OrderPlainWrite(device, use), "ordering a copy")) {
    return;
  }
  target.last = values.values;
  const FinishedCall done = Observed(use, wait, call);
  CheckCall(target.count, values, done);
  EndPlain(target, use, values, done);
}

// REQUIRES: the target is locked.
void PlanRun::EndPlain(Target& target, const StreamUse& use, const CallValues& values,
                       const FinishedCall& done) {
  Buffer& buffer = target.bound();
  if (done.enqueued()) {
    buffer.model().Write(EffectOf(target, values, false));
    buffer.AddPlainWrite(MarkAfterCall(use), target.mirror.has_value());
    target.knowledge.ForgetRange(0, values.Image(target.count).size());
  } else if (done.may_have_written()) {
    buffer.model().Write(EffectOf(target, values, true));
    buffer.AddPossibleWrite(MarkAfterCall(use), false);
    target.knowledge.Unsure();
  } else if (!done.outcome && !done.refused()) {
    target.knowledge.MayHaveForgotten();
  }
}

void PlanRun::MirroredCall(Target& target, const StreamUse& use, const CallValues& values,
                           bool wait, const CopyCall& call) {
  BatchPart part{.target = &target, .values = values};
  {
    MutexLock lock(target.mutex);
    if (!BeginMirrored(part, use)) return;
  }
  FinishedCall done = Observed(use, wait, call);

  MutexLock lock(target.mutex);
  done.overlapped = target.overlapped;
  CheckCall(target.count, values, done);
  if (!values.nothing()) CheckDue(BytesDue(part), done);
  EndMirrored(part, use, done, done.enqueued());
}

// REQUIRES: the target is locked, and so it is for `EndMirrored`; not in between.
bool PlanRun::BeginMirrored(BatchPart& call, const StreamUse& use) {
  Target& target = *call.target;
  call.buffer = &target.bound();
  if (call.buffer->model().crowded()) return false;
  if (!use.slot().capturing &&
      !Required(call.buffer->OrderMirroredWrite(harness_.callers_device(), use),
                "ordering a copy")) {
    return false;
  }
  target.last = call.values.values;
  call.begun = call.buffer->Tick();
  call.model_call = call.buffer->model().Begin();
  if (target.in_flight++ > 0) target.overlapped = true;
  return true;
}

void PlanRun::EndMirrored(const BatchPart& call, const StreamUse& use, const FinishedCall& done,
                          bool moved_origin) {
  Target& target = *call.target;
  if (target.overlapped) {
    ++result_.counts.overlapped;
    target.knowledge.Unsure();
  }
  std::optional<WriteEffect> effect;
  if (done.outcome && !done.would_block() && !call.values.nothing()) {
    effect = EffectOf(target, call.values, false);
    call.buffer->AddMirroredWrite(MarkAfterCall(use), call.begun, moved_origin);
    if (!target.overlapped) target.knowledge.Learn(call.values.Image(target.count));
  } else if (done.may_have_written()) {
    effect = EffectOf(target, call.values, true);
    call.buffer->AddPossibleWrite(MarkAfterCall(use), true);
    target.knowledge.Unsure();
  } else if (!done.outcome && !done.refused()) {
    target.knowledge.Unsure();
  }
  call.buffer->model().End(call.model_call, std::move(effect));
  if (--target.in_flight == 0) target.overlapped = false;
}

void PlanRun::Acquire(const PlanOp& op, size_t task) {
  if (leases_[task].size() >= kMaxLeasesOfTask) return;
  Count(op);
  Target& target = TargetAt(op);
  CallValues values = NextValues(op, target.last, target.element_bytes, target.count);
  values.pad.clear();
  if (values.values.empty()) return;
  const bool wait = op.flag(0);
  std::unique_ptr<LeaseUnderTest> lease;
  // Without a slot it is judged as a copy that would block.
  const FinishedCall done = Observed(wait, [&]() -> Expected<CopyOutcome> {
    auto acquired = stager_->Acquire(values.values.size(), wait);
    if (!acquired) return ErrorOf(acquired);
    lease = std::move(*acquired);
    return CopyOutcome{.kind = CopyOutcome::Kind::kWouldBlock};
  });
  if (lease == nullptr) {
    CheckCall(target.count, values, done);
    if (done.outcome) {
      --result_.counts.would_block;
      ++result_.counts.slots_refused;
    }
    return;
  }
  if (done.asked.copies != 0 || done.asked.records != 0) Fail("taking a slot enqueued something");
  const std::span<std::byte> slot = lease->bytes();
  if (slot.size() != values.values.size()) {
    return Fail("a slot of " + std::to_string(values.values.size()) + " B has " +
                std::to_string(slot.size()) + " B");
  }
  harness_.callers_device().OnHostAccess(slot, HostAccess::kWrite);
  std::memcpy(slot.data(), values.values.data(), slot.size());
  leases_[task].push_back({std::move(lease), &target, std::move(values)});
}

void PlanRun::Submit(const PlanOp& op, size_t task) {
  std::vector<Lease>& held = leases_[task];
  StreamUse use(streams_.At(op.stream));
  if (!use || held.empty()) return;
  Count(op);
  const size_t which = op.extra % held.size();
  Lease& lease = held[which];
  LeaseUnderTest& slot = *lease.lease;
  Target& target = *lease.target;
  if (op.flag(2)) {  // written once more before it travels
    harness_.callers_device().OnHostAccess(slot.bytes(), HostAccess::kWrite);
    lease.values.values[0] = static_cast<uint8_t>(lease.values.values[0] ^ 1);
    slot.bytes()[0] = static_cast<std::byte>(lease.values.values[0]);
  }
  if (target.mirror.has_value() && !op.flag(1)) {
    MirroredCall(target, use, lease.values, false,
                 [&] { return slot.SubmitMirrored(*target.mirror, use.stream()); });
  } else {
    PlainCall(target, use, lease.values, false,
              [&] { return slot.Submit(target.destination(target.bound_index), use.stream()); });
  }
  if (slot.bytes().empty()) held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
}

void PlanRun::Drop(const PlanOp& op, size_t task) {
  std::vector<Lease>& held = leases_[task];
  if (held.empty()) return;
  Count(op);
  held.erase(held.begin() + static_cast<std::ptrdiff_t>(op.extra % held.size()));
}

}  // namespace h2d::testing
