// Calls that can never work: each gets a clear error and changes nothing.
#include <array>

#include "h2d/tests/support/plan_run.h"

namespace h2d::testing {
namespace {

enum class Bad : uint8_t {
  kTooManyValues,
  kNullDestination,
  kOtherElementSize,
  kOverflow,
  kEmptySlot,
  kHugeSlot,
  kOverlappingMirror,
  kNullRebind,
};
constexpr uint8_t kBads = 8;

}  // namespace

void PlanRun::BadCall(const PlanOp& op) {
  StreamUse use(streams_.At(op.stream));
  if (!use) return;
  Count(op);
  Target& target = TargetAt(op);
  Target& mirrored = MirroredAt(op);
  // One element too many, of zeros.
  CallValues values{.element_bytes = target.element_bytes, .values = Bytes(target.bytes(), 0)};
  const Destination destination = target.destination(target.bound_index);
  Destination other = destination;
  ErrorCode due = ErrorCode::kInvalidArgument;
  Expected<void> done;
  const auto copy_to = [&](const Destination& to) {
    const auto outcome = stager_->Copy(to, values.View(), use.stream(), op.flag(0));
    if (!outcome) done = Unexpected(outcome.error());
  };
  const DeviceCalls before = CallsOfThisThread();
  const auto bad = static_cast<Bad>(op.variant / 2 % kBads);
  switch (bad) {
    case Bad::kTooManyValues:
      values.values.resize(target.bytes() + target.element_bytes);
      copy_to(destination);
      break;
    case Bad::kNullDestination:
      other.ptr = DevicePtr();
      copy_to(other);
      break;
    case Bad::kOtherElementSize:
      other.element_bytes = target.element_bytes * 2;
      copy_to(other);
      break;
    case Bad::kOverflow:
      other.count = ~uint64_t{0} / target.element_bytes + 1;
      if (target.element_bytes == 1) other.count = ~uint64_t{0};
      copy_to(other);
      break;
    case Bad::kEmptySlot:
    case Bad::kHugeSlot: {
      const bool huge = bad == Bad::kHugeSlot;
      if (huge) due = ErrorCode::kResourceExhausted;
      const auto lease = stager_->Acquire(huge ? options_.max_pinned_bytes + 1 : 0, op.flag(0));
      if (!lease) done = Unexpected(lease.error());
      break;
    }
    case Bad::kOverlappingMirror: {
      MutexLock lock(mirrored.mutex);
      Destination part = mirrored.destination(mirrored.bound_index);
      part.ptr = part.ptr + (part.count - 1) * part.element_bytes;
      part.count = 1;
      done = stager_->NewMirror(mirrors_, part);
      break;
    }
    case Bad::kNullRebind: {
      MutexLock lock(mirrored.mutex);  // nobody makes the mirror anew meanwhile
      done = stager_->Rebind(*mirrored.mirror, {DevicePtr(), mirrored.count, 4});
      break;
    }
  }
  const DeviceCalls asked = CallsOfThisThread() - before;
  if (done) return Fail("a bad call was accepted");
  const ErrorCode code = done.error().code;
  const bool refused_earlier = use.slot().capturing && code == ErrorCode::kFailedPrecondition;
  const bool fault = harness_.faults_fired() != 0 && code == ErrorCode::kDevice;
  if (code != due && !refused_earlier && !fault) {
    Fail("a bad call got another error than its own: " + done.error().ToString());
  }
  if (asked.copies + asked.records + asked.stream_waits + asked.allocations != 0) {
    Fail("a bad call reached the device: " + done.error().ToString());
  }
}

}  // namespace h2d::testing
