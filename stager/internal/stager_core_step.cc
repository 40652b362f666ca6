// Sends what changed of a step.
#include <algorithm>
#include <cstring>
#include <utility>

#include "h2d/stager/internal/inline_vector.h"
#include "h2d/stager/internal/stager_core.h"
#include "h2d/stager/internal/state_mark.h"
#include "h2d/stager/internal/step_state.h"

namespace h2d::internal {
namespace {

// Copies the spans of the image one behind the other into the slot.
void FillSpans(const std::byte* image, std::span<const ByteSpan> spans, std::byte* slot) noexcept {
  for (const ByteSpan span : spans) {
    std::memcpy(slot, image + span.begin, span.bytes());
    slot += span.bytes();
  }
}

}  // namespace

// More spans than one batch call carries take several.
Expected<void> StagerCore::EnqueueSpans(std::span<const ByteSpan> spans, DevicePtr slab,
                                        std::span<const std::byte> slot, const Stream& stream) {
  if (spans.size() == 1) [[likely]]
    return device_->CopyAsync(slab + spans[0].begin, slot.first(spans[0].bytes()), stream);
  while (!spans.empty()) {
    InlineVector<CopyEntry, kMaxBatchEntries> entries;
    const size_t count = std::min(spans.size(), kMaxBatchEntries);
    for (const ByteSpan span : spans.first(count)) {
      entries.push_back({slab + span.begin, slot.first(span.bytes())});
      slot = slot.subspan(span.bytes());
    }
    Expected<void> sent = EnqueueEntries(entries.all(), stream);
    if (!sent) return sent;
    spans = spans.subspan(count);
  }
  return {};
}

Expected<CopyOutcome> StagerCore::SkipStep(StepState& step, const Stream& stream, StreamId id) {
  Expected<bool> crossed = step.order().Follow(ring_, stream, id);
  if (!crossed) return ErrorOf(crossed);
  Reached(Mark::kStepUnchanged);
  CountSkipped(step.image().asked_bytes());
  step.image().MarkSent();
  return CopyOutcome{};
}

// One try. It would block when a slot of `*wanted` bytes is needed, `held` holds no such one, and
// none is free.
Expected<CopyOutcome> StagerCore::TryStep(StepState& step, const Stream& stream, HeldSlot& held,
                                          uint64_t* wanted) {
  auto status = device_->Inspect(stream);
  if (Refuses(status)) return StreamError(std::move(status));
  const std::span<const ByteSpan> spans = step.SpansToSend();
  if (spans.empty()) return SkipStep(step, stream, status->id);
  uint64_t bytes = 0;
  for (const ByteSpan span : spans) bytes += span.bytes();
  auto enough = TakeInto(held, bytes, stream, status->id);
  if (!enough) return ErrorOf(enough);
  if (!*enough) {
    *wanted = bytes;
    return CopyOutcome{CopyOutcome::Kind::kWouldBlock, 0};
  }
  auto ordered = step.order().Follow(ring_, stream, status->id);
  if (!ordered) return ErrorOf(ordered);
  const SentBytes counted{step.image().asked_bytes(), bytes};
  return SendStep(step, spans, held.Release(), counted, stream, status->id);
}

Expected<CopyOutcome> StagerCore::TrySubmitStep(StepState& step, const Stream& stream,
                                                WaitForSlot wait) {
  if (!alive()) return NotAlive();
  HeldSlot held(ring_);
  for (;;) {
    uint64_t wanted = 0;
    auto outcome = TryStep(step, stream, held, &wanted);
    if (!outcome || outcome->kind != CopyOutcome::Kind::kWouldBlock) return outcome;
    if (wait == WaitForSlot::kNo) return WouldBlock();
    // Another path may overwrite the slab while this call waits, so that the spans are found anew.
    auto waited = ring_.WaitAndTake(wanted);
    if (!waited) return ErrorOf(waited);
    held.Hold(*waited);
    Reached(Mark::kStepFoundAnew);
  }
}

// REQUIRES: `stream` is ordered after the slab's last copy.
Expected<CopyOutcome> StagerCore::SendStep(StepState& step, std::span<const ByteSpan> spans,
                                           const SlotRef& slot, const SentBytes& bytes,
                                           const Stream& stream, StreamId id) {
  device_->OnHostAccess(slot.bytes.first(bytes.sent), HostAccess::kWrite);
  FillSpans(step.image().data(), spans, slot.bytes.data());
  if (spans.size() > 1) {
    Reached(stream.kind() == StreamKind::kLegacyDefault ? Mark::kStepSeparate : Mark::kStepApart);
  }
  Expected<void> sent = EnqueueSpans(spans, step.slab(), slot.bytes, stream);
  CopyRef copy;
  Expected<void> recorded = ring_.Publish(slot, stream, id, sent ? bytes : SentBytes{}, &copy);
  step.order().Commit(copy);
  // After an error all stays to be sent: what was enqueued of it may have arrived, or not.
  if (!sent) {
    Reached(Mark::kStepNotSent);
    return ErrorOf(sent);
  }
  if (!recorded) {
    Reached(Mark::kStepNotSent);
    failed_once_enqueued_.AddRelaxed(1);
    return ErrorOf(recorded);
  }
  step.image().MarkSent();
  const bool trimmed = bytes.sent < bytes.asked;
  return CopyOutcome{trimmed ? CopyOutcome::Kind::kTrimmed : CopyOutcome::Kind::kIssued,
                     bytes.sent};
}

Expected<CopyOutcome> StagerCore::SubmitStep(StepState& step, const Stream& stream,
                                             WaitForSlot wait) {
  Expected<CopyOutcome> outcome = TrySubmitStep(step, stream, wait);
  CountFailure(outcome);
  return outcome;
}

}  // namespace h2d::internal
