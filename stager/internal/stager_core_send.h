// How a slot is filled and enqueued, or a copy skipped: what the ways of copying share, inline for
// each of them.
#ifndef H2D_STAGER_INTERNAL_STAGER_CORE_SEND_H_
#define H2D_STAGER_INTERNAL_STAGER_CORE_SEND_H_

#include "h2d/stager/internal/stager_core.h"
#include "h2d/stager/internal/state_mark.h"

namespace h2d::internal {

inline StagerCore::Filled StagerCore::FillSlot(const SlotRef& slot, const ImageBytes& image,
                                               ByteSpan span, DevicePtr base) {
  const std::span<std::byte> bytes = slot.bytes.first(span.bytes());
  device_->OnHostAccess(bytes, HostAccess::kWrite);
  Fill(image, span, bytes.data());
  return {slot, bytes, base + span.begin};
}

inline Expected<void> StagerCore::Enqueue(const Filled& filled, const Stream& stream, StreamId id,
                                          uint64_t bytes_asked, CopyRef* copy) {
  Expected<void> copied = device_->CopyAsync(filled.to, filled.bytes, stream);
  const SentBytes counted = copied ? SentBytes{bytes_asked, filled.bytes.size()} : SentBytes{};
  Expected<void> recorded = ring_.Publish(filled.slot, stream, id, counted, copy);
  if (copied) [[likely]] {
    if (!recorded) failed_once_enqueued_.AddRelaxed(1);
    return recorded;
  }
  Reached(Mark::kFailedCopyGuarded);
  return copied;
}

inline Expected<CopyOutcome> StagerCore::SendPlain(const Filled& filled, const Stream& stream,
                                                   StreamId id) {
  const uint64_t bytes = filled.bytes.size();
  // Mirrors forget before the enqueueing, because from then on its effect may be seen, and after
  // it, whatever it answered, because a mirrored copy may have come between.
  registry_->ForgetOverlapping(filled.to, bytes);
  Expected<void> sent = Enqueue(filled, stream, id, bytes, nullptr);
  registry_->ForgetOverlapping(filled.to, bytes);
  if (!sent) return ErrorOf(sent);
  return CopyOutcome{CopyOutcome::Kind::kIssued, bytes};
}

inline Expected<CopyOutcome> StagerCore::Skip(MirrorState& mirror, uint64_t bytes,
                                              const Stream& stream, StreamId id) {
  Expected<bool> crossed = mirror.order().Follow(ring_, stream, id);
  if (!crossed) return ErrorOf(crossed);
  Reached(*crossed ? Mark::kSkipAcrossStreams : Mark::kSkip);
  CountSkipped(bytes);
  return CopyOutcome{};
}

}  // namespace h2d::internal

#endif  // H2D_STAGER_INTERNAL_STAGER_CORE_SEND_H_
