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

// Whether a failed call may have enqueued its copy.
bool MayHaveWritten(const FinishedCall& done) {
  return !done.outcome && done.outcome.error().code == ErrorCode::kDevice && done.asked.copies != 0;
}

bool Enqueued(const CopyOutcome& outcome) {
  return outcome.kind == CopyOutcome::Kind::kIssued || outcome.kind == CopyOutcome::Kind::kTrimmed;
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
  FinishedCall done = Observed(wait, call);
  done.capturing = use.slot().capturing;
  CheckCall(target, values, done);
  const bool mirrored = target.mirror.has_value();
  if (done.outcome && Enqueued(*done.outcome)) {
    buffer.model().Write(EffectOf(target, values, false));
    buffer.AddPlainWrite(MarkAfterCall(use), mirrored);
    target.knowledge.ForgetRange(0, values.Image(target.count).size());
  } else if (MayHaveWritten(done)) {
    buffer.model().Write(EffectOf(target, values, true));
    buffer.AddPossibleWrite(MarkAfterCall(use), false);
    target.knowledge.Unsure();
  } else if (!done.outcome && done.outcome.error().code != ErrorCode::kFailedPrecondition) {
    target.knowledge.MayHaveForgotten();
  }
}

void PlanRun::MirroredCall(Target& target, const StreamUse& use, const CallValues& values,
                           bool wait, const CopyCall& call) {
  Buffer* buffer = nullptr;
  uint64_t begun = 0;
  size_t model_call = 0;
  {
    MutexLock lock(target.mutex);
    buffer = &target.bound();
    if (buffer->model().crowded()) return;
    if (!use.slot().capturing &&
        !Required(buffer->OrderMirroredWrite(harness_.callers_device(), use), "ordering a copy")) {
      return;
    }
    target.last = values.values;
    begun = buffer->Tick();
    model_call = buffer->model().Begin();
    if (target.in_flight++ > 0) target.overlapped = true;
  }
  FinishedCall done = Observed(wait, call);
  done.capturing = use.slot().capturing;

  MutexLock lock(target.mutex);
  if (target.overlapped) {
    ++result_.counts.overlapped;
    target.knowledge.Unsure();
  }
  CheckCall(target, values, done);
  std::optional<WriteEffect> effect;
  const bool would_block = done.outcome && done.outcome->kind == CopyOutcome::Kind::kWouldBlock;
  if (done.outcome && !would_block && !values.nothing()) {
    effect = EffectOf(target, values, false);
    buffer->AddMirroredWrite(MarkAfterCall(use), begun, Enqueued(*done.outcome));
    if (!target.overlapped) target.knowledge.Learn(values.Image(target.count));
  } else if (MayHaveWritten(done)) {
    effect = EffectOf(target, values, true);
    buffer->AddPossibleWrite(MarkAfterCall(use), true);
    target.knowledge.Unsure();
  } else if (!done.outcome && done.outcome.error().code != ErrorCode::kFailedPrecondition) {
    target.knowledge.Unsure();
  }
  buffer->model().End(model_call, std::move(effect));
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
    CheckCall(target, values, done);
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
