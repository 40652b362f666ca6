// What one call of the library may answer, and what it may ask of the device meanwhile.
#include "h2d/tests/support/plan_run.h"

namespace h2d::testing {

void PlanRun::CheckCall(uint64_t capacity, const CallValues& values, const FinishedCall& done) {
  CountOutcome(done);
  CheckAsked(done);
  if (done.outcome) {
    CheckOutcome(capacity, values, done);
  } else {
    CheckError(done, values.nothing());
  }
  CheckLimits();
}

void PlanRun::CheckAsked(const FinishedCall& done) {
  if (!done.wait && done.asked.waits != 0) Fail("a call that may not wait did (I6)");
  if (done.asked.trims != 0) Fail("a call on a step's path freed pinned memory (I6)");
  if (done.transfers() > 1 && !done.legacy) {
    Fail("one call enqueued " + std::to_string(done.transfers()) + " copies (I2)");
  }
  if (steady_ && done.asked.allocations != 0) Fail("a ring that cannot grow allocated (I6)");
  // After a failed record a call may record that slot once more besides its own.
  if (done.asked.records > 1 && harness_.faults_fired() == 0) {
    Fail("one call recorded more than one event");
  }
}

void PlanRun::CheckError(const FinishedCall& done, bool brings_nothing) {
  const Error& error = done.outcome.error();
  if (brings_nothing) return Fail("a call that brings nothing failed: " + error.ToString());
  const bool faults = harness_.faults_fired() != 0;
  bool legal = faults;
  switch (error.code) {
    case ErrorCode::kInvalidArgument:
      legal = false;
      break;
    case ErrorCode::kFailedPrecondition:
      legal = done.capturing;
      if (done.transfers() + done.asked.records + done.asked.stream_waits != 0) {
        Fail("a call that a capture refused had enqueued something (I7)");
      }
      break;
    case ErrorCode::kUnavailable:
      legal = faults || done.wait;
      break;
    case ErrorCode::kResourceExhausted:
    case ErrorCode::kDevice:
      break;
  }
  if (!legal) Fail("a good call failed: " + error.ToString());
  if (error.message.empty()) Fail("an error has no message");
}

void PlanRun::CheckOutcome(uint64_t capacity, const CallValues& values, const FinishedCall& done) {
  if (values.nothing()) {
    if (*done.outcome != CopyOutcome{}) Fail("a call that brings nothing did something (I3)");
    if (done.asked.all() != 0) Fail("a call that brings nothing made a device call (I3)");
    return;
  }
  const uint64_t image_bytes = values.Image(capacity).size();
  CheckTransfer(done, image_bytes);
  if (done.outcome->kind == CopyOutcome::Kind::kIssued && done.outcome->bytes_sent != image_bytes) {
    Fail("an issued copy did not send its whole image");
  }
}

// Whether what travelled is what the mirrors did not know.
void PlanRun::CheckDue(const MirrorKnowledge::Bounds& due, const FinishedCall& done) {
  if (!done.outcome || done.overlapped || !stager_->stats()) return;
  if (done.would_block()) {
    if (due.most == 0) Fail("a mirror hit wanted a slot (I6)");
    return;
  }
  const uint64_t sent = done.outcome->bytes_sent;
  if (sent >= due.least && sent <= due.most) return;
  Fail(std::to_string(sent) + " B travelled; the mirrors lack " + std::to_string(due.least) +
       " to " + std::to_string(due.most) + " B (I4)");
}

void PlanRun::CheckTransfer(const FinishedCall& done, uint64_t asked_bytes) {
  using Kind = CopyOutcome::Kind;
  const CopyOutcome& outcome = *done.outcome;
  if (done.capturing) return Fail("a copy on a capturing stream was accepted (I7)");
  if ((done.transfers() != 0) != done.enqueued()) {
    return Fail("a copy reported as " + std::string(ToString(outcome.kind)) + " enqueued " +
                std::to_string(done.transfers()) + " copies");
  }
  switch (outcome.kind) {
    case Kind::kIssued:
      // A step may cover equal bytes between those that were asked.
      if (outcome.bytes_sent < asked_bytes) Fail("an issued copy did not send its whole image");
      break;
    case Kind::kTrimmed:
      if (outcome.bytes_sent == 0 || outcome.bytes_sent >= asked_bytes) {
        Fail("a trimmed copy sent " + std::to_string(outcome.bytes_sent) + " B of " +
             std::to_string(asked_bytes) + " B");
      }
      break;
    case Kind::kSkipped:
      if (outcome.bytes_sent != 0) Fail("a skipped copy sent bytes");
      if (!done.overlapped && done.asked.waits + done.asked.records + done.asked.allocations != 0) {
        Fail("a mirror hit took a slot or waited (I6)");
      }
      break;
    case Kind::kWouldBlock:
      if (done.wait) Fail("a call that may wait answered that it would block");
      if (outcome.bytes_sent != 0) Fail("a call that would block sent bytes");
      if (done.asked.allocations != 0 && done.alone && harness_.faults_fired() == 0) {
        Fail("a call that would block allocated");
      }
      break;
  }
}

void PlanRun::CheckLimits() {
  const std::optional<StagerStats> stats = stager_->stats();
  if (!stats) return;
  if (stats->pinned_bytes_most > options_.max_pinned_bytes) {
    Fail("the stager owned " + std::to_string(stats->pinned_bytes_most) + " B of pinned memory; " +
         std::to_string(options_.max_pinned_bytes) + " B are allowed (I10)");
  }
  if (stats->slots_in_use_most > options_.max_slots) {
    Fail(std::to_string(stats->slots_in_use_most) + " slots were in use; " +
         std::to_string(options_.max_slots) + " are allowed (I10)");
  }
}

void PlanRun::CountOutcome(const FinishedCall& done) {
  RunCounts& counts = result_.counts;
  if (!done.outcome) {
    switch (done.outcome.error().code) {
      case ErrorCode::kFailedPrecondition:
        ++counts.refused;
        break;
      case ErrorCode::kUnavailable:
        ++counts.unavailable;
        break;
      default:
        ++counts.device_errors;
        break;
    }
    return;
  }
  counts.bytes_sent += done.outcome->bytes_sent;
  switch (done.outcome->kind) {
    case CopyOutcome::Kind::kIssued:
      ++counts.issued;
      break;
    case CopyOutcome::Kind::kTrimmed:
      ++counts.trimmed;
      break;
    case CopyOutcome::Kind::kSkipped:
      if (done.asked.all() != 0) ++counts.skipped;
      break;
    case CopyOutcome::Kind::kWouldBlock:
      ++counts.would_block;
      break;
  }
}

}  // namespace h2d::testing
