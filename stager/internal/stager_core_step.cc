// Sends what changed of a step.
#include <array>
#include <cstring>
#include <utility>

#include "h2d/stager/internal/stager_core.h"
#include "h2d/stager/internal/state_mark.h"
#include "h2d/stager/internal/step_state.h"

namespace h2d::internal {
namespace {

// How many entries one batch call carries; more spans take several calls.
constexpr size_t kMaxBatchEntries = 64;

// Copies the spans of the image one behind the other into the slot.
void FillSpans(const std::byte* image, std::span<const ByteSpan> spans, std::byte* slot) noexcept {
  for (const ByteSpan span : spans) {
    std::memcpy(slot, image + span.begin, span.bytes());
    slot += span.bytes();
  }
}

}  // namespace

// All of the spans, whatever became of those before: a failed copy call may have been enqueued.
Expected<void> StagerCore::EnqueueSpans(std::span<const ByteSpan> spans, DevicePtr slab,
                                        std::span<const std::byte> slot, const Stream& stream) {
  const bool batches = spans.size() > 1 && stream.kind() != StreamKind::kLegacyDefault;
  const size_t at_once = batches ? kMaxBatchEntries : 1;
  std::array<CopyEntry, kMaxBatchEntries> entries;
  while (!spans.empty()) {
    const size_t count = std::min(spans.size(), at_once);
    for (size_t i = 0; i < count; ++i) {
      entries[i] = {slab + spans[i].begin, slot.first(spans[i].bytes())};
      slot = slot.subspan(spans[i].bytes());
    }
    Expected<void> sent =
        batches ? device_->CopyBatchAsync({entries.data(), count}, stream)
                : device_->CopyAsync(entries[0].destination, entries[0].source, stream);
    if (!sent) return sent;
    spans = spans.subspan(count);
  }
  return {};
}

Expected<CopyOutcome> StagerCore::TrySubmitStep(StepState& step, const Stream& stream,
                                                WaitForSlot wait) {
  if (!alive()) return NotAlive();
  auto status = device_->Inspect(stream);
  if (Refuses(status)) return StreamError(std::move(status));
  const std::span<const ByteSpan> spans = step.SpansToSend();
  const uint64_t asked = step.image().asked_bytes();
  HeldSlot held(ring_);
  uint64_t bytes = 0;
  for (const ByteSpan span : spans) bytes += span.bytes();
  if (bytes > 0) {
    auto slot = TryTake(bytes, stream, status->id);
    if (!slot) return ErrorOf(slot);
    if (!*slot) {
      if (wait == WaitForSlot::kNo) return WouldBlock();
      auto waited = ring_.WaitAndTake(bytes);
      if (!waited) return ErrorOf(waited);
      *slot = *waited;
    }
    held.Hold(**slot);
  }
  auto ordered = step.order().Follow(ring_, stream, status->id);
  if (!ordered) return ErrorOf(ordered);
  if (bytes == 0) {
    Reached(*ordered ? Mark::kSkipAcrossStreams : Mark::kSkip);
    skipped_.AddRelaxed(1);
    skipped_bytes_.AddRelaxed(asked);
    step.image().MarkSent();
    return CopyOutcome{};
  }
  return SendStep(step, spans, held.Release(), {asked, bytes}, stream, status->id);
}

// REQUIRES: `stream` is ordered after the slab's last copy.
Expected<CopyOutcome> StagerCore::SendStep(StepState& step, std::span<const ByteSpan> spans,
                                           const SlotRef& slot, const SentBytes& bytes,
                                           const Stream& stream, StreamId id) {
  device_->OnHostAccess(slot.bytes, HostAccess::kWrite);
  FillSpans(step.image().data(), spans, slot.bytes.data());
  Expected<void> sent = EnqueueSpans(spans, step.slab(), slot.bytes, stream);
  CopyRef copy;
  Expected<void> recorded = ring_.Publish(slot, stream, id, sent ? bytes : SentBytes{}, &copy);
  step.order().Commit(copy);
  if (!sent) {
    Reached(Mark::kFailedCopyGuarded);
    return ErrorOf(sent);
  }
  if (!recorded) {
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
  return Counted(TrySubmitStep(step, stream, wait));
}

}  // namespace h2d::internal
