// Copies to several destinations together, plain and through mirrors.
#include <algorithm>
#include <utility>

#include "h2d/tests/support/plan_run.h"

namespace h2d::testing {
namespace {

// What the part of number `i` brings: its own values, by the bytes of one operation.
PlanOp OpOfPart(const PlanOp& op, size_t i) {
  PlanOp part = op;
  const auto n = static_cast<uint8_t>(i);
  if (op.flag(4)) {  // all as they were last
    part.edit = static_cast<uint8_t>(Edit::kSame);
    part.pad = 0;
    return part;
  }
  part.edit = static_cast<uint8_t>(op.edit + n * op.span);
  part.length = static_cast<uint8_t>(op.length + 37 * n);
  part.pad = static_cast<uint8_t>(op.pad + n * op.position);
  return part;
}

bool IsHit(const MirrorKnowledge::Bounds& due) { return due.most == 0; }

}  // namespace

void PlanRun::Batch(const PlanOp& op) {
  StreamUse use(StepStreamAt(op));
  if (!use || !stager_->has_steps()) return;
  Count(op);
  const bool wait = op.flag(0);
  const std::vector<BatchPart> parts = BeginBatch(op, use);
  std::vector<BatchEntryUnderTest> entries;
  for (const BatchPart& part : parts) {
    const Target& target = *part.target;
    entries.push_back(
        {.destination = target.destination(target.bound_index), .image = part.values.View()});
    if (!part.plain) entries.back().mirror = target.mirror;
  }
  FinishedCall done =
      Observed(use, wait, [&] { return stager_->CopyBatch(entries, use.stream(), wait); });
  done.overlapped = std::any_of(parts.begin(), parts.end(), [](const BatchPart& part) {
    return !part.plain && part.target->overlapped;
  });
  CheckBatch(parts, done);
  MarkBatch(parts, done);
  EndBatch(parts, use, done);
}

// Targets are locked in ascending order, and those of plain copies stay so: no two batches wait for
// each other.
std::vector<PlanRun::BatchPart> PlanRun::BeginBatch(const PlanOp& op, const StreamUse& use)
    H2D_ANNOTATE(no_thread_safety_analysis) {
  std::vector<BatchPart> parts;
  const uint32_t chosen = op.flag(3) ? op.target & op.position : op.target;
  for (size_t i = 0; i < targets_.size(); ++i) {
    if ((chosen >> i & 1) == 0) continue;
    Target& target = targets_[i];
    BatchPart part{.target = &target, .plain = !target.mirror || (op.extra & op.value) >> i & 1};
    target.mutex.Lock();
    part.values = NextValues(OpOfPart(op, i), target.last, target.element_bytes, target.count);
    const bool begun = BeginPart(part, use);
    if (!begun || !part.plain) target.mutex.Unlock();
    if (begun) parts.push_back(std::move(part));
  }
  return parts;
}

bool PlanRun::BeginPart(BatchPart& part, const StreamUse& use) {
  if (!part.plain) return BeginMirrored(part, use);
  Target& target = *part.target;
  if (target.in_flight != 0) return false;
  if (!use.slot().capturing &&
      !Required(target.bound().OrderPlainWrite(harness_.callers_device(), use),
                "ordering a copy")) {
    return false;
  }
  target.last = part.values.values;
  return true;
}

// The plain ones first: who waits for a mirrored target holds none.
void PlanRun::EndBatch(const std::vector<BatchPart>& parts, const StreamUse& use,
                       const FinishedCall& done) H2D_ANNOTATE(no_thread_safety_analysis) {
  const auto failed_now = !done.outcome && !done.refused();
  // Before anything is learnt from this call.
  std::vector<bool> moved;
  for (const BatchPart& part : parts) {
    moved.push_back(done.enqueued() && !part.target->overlapped && BytesDue(part).least != 0);
  }
  for (const BatchPart& part : parts) {
    if (!part.plain) continue;
    if (!part.values.nothing()) EndPlain(*part.target, use, part.values, done);
    part.target->mutex.Unlock();
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].plain) continue;
    MutexLock lock(parts[i].target->mutex);
    EndMirrored(parts[i], use, done, moved[i]);
    parts[i].target->batch_failed = failed_now;
  }
}

MirrorKnowledge::Bounds PlanRun::BytesDue(const BatchPart& part) const {
  const Bytes image = part.values.Image(part.target->count);
  if (part.plain) return {image.size(), image.size()};
  return part.target->knowledge.BytesDue(image, part.target->element_bytes,
                                         options_.min_trim_bytes);
}

void PlanRun::CheckBatch(const std::vector<BatchPart>& parts, const FinishedCall& done) {
  MirrorKnowledge::Bounds due;
  uint64_t asked = 0;
  for (const BatchPart& part : parts) {
    const MirrorKnowledge::Bounds bounds = BytesDue(part);
    due.least += bounds.least;
    due.most += bounds.most;
    asked += part.image_bytes();
  }
  CountOutcome(done);
  CheckAsked(done);
  if (!done.outcome) {
    CheckError(done, asked == 0);
  } else if (asked == 0) {
    if (*done.outcome != CopyOutcome{} || done.asked.all() != 0) {
      Fail("a batch that brings nothing did something (I3)");
    }
  } else {
    CheckTransfer(done, asked);
    CheckDue(due, done);
    if (done.outcome->bytes_sent > asked) Fail("a batch sent more than was asked (I3)");
  }
  CheckLimits();
}

void PlanRun::MarkBatch(const std::vector<BatchPart>& parts, const FinishedCall& done) {
  if (done.refused()) Reach(PlanMark::kBatchRefused);
  if (done.would_block()) Reach(PlanMark::kBatchWouldBlock);
  if (done.overlapped && done.outcome) Reach(PlanMark::kBatchOverlapped);
  if (!done.enqueued()) return;
  bool hit = false;
  bool failed_before = false;
  bool over_mirror = false;
  for (const BatchPart& part : parts) {
    if (part.values.nothing()) continue;
    hit = hit || (!part.plain && !part.target->overlapped && IsHit(BytesDue(part)));
    failed_before = failed_before || (!part.plain && part.target->batch_failed);
    over_mirror = over_mirror || (part.plain && part.target->mirror.has_value());
  }
  if (hit) Reach(PlanMark::kBatchHitBesideCopy);
  if (failed_before) Reach(PlanMark::kBatchAfterFailure);
  if (over_mirror) Reach(PlanMark::kBatchOverMirror);
}

}  // namespace h2d::testing
