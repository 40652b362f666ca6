// Copies to plain and to mirrored destinations.
#include <utility>

#include "h2d/stager/internal/checked_image.h"
#include "h2d/stager/internal/stager_core.h"
#include "h2d/stager/internal/state_mark.h"

namespace h2d::internal {

Expected<bool> StagerCore::TryTake(uint64_t bytes, const Stream& stream, StreamId id,
                                   SlotRef* slot) {
  if (!FitsLimit(bytes)) [[unlikely]]
    return DoesNotFitLimit(bytes);
  Expected<bool> taken = ring_.TryTake(bytes, slot);
  if (taken && *taken) [[likely]]
    return taken;
  return ring_.RecordQuarantined(stream, id) ? ring_.TryTake(bytes, slot) : std::move(taken);
}

// Whether `held` holds a slot of at least `bytes` bytes now.
Expected<bool> StagerCore::TakeInto(HeldSlot& held, uint64_t bytes, const Stream& stream,
                                    StreamId id) {
  if (held && held.slot().bytes.size() >= bytes) return true;
  held.HandBack();  // who waits for a slot holds none, or two could wait for each other's
  SlotRef slot;
  Expected<bool> taken = TryTake(bytes, stream, id, &slot);
  if (taken && *taken) held.Hold(slot);
  return taken;
}

StagerCore::Filled StagerCore::FillSlot(const SlotRef& slot, const ImageBytes& image, ByteSpan span,
                                        DevicePtr base) {
  const std::span<std::byte> bytes = slot.bytes.first(span.bytes());
  device_->OnHostAccess(bytes, HostAccess::kWrite);
  Fill(image, span, bytes.data());
  return {slot, bytes, base + span.begin};
}

Expected<void> StagerCore::Enqueue(const Filled& filled, const Stream& stream, StreamId id,
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

Expected<CopyOutcome> StagerCore::SendPlain(const Filled& filled, const Stream& stream,
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

Expected<CopyOutcome> StagerCore::TryCopyPlain(const Destination& destination,
                                               const HostImage& image, const Stream& stream,
                                               WaitForSlot wait) {
  if (!alive()) return NotAlive();
  auto bytes = CheckedImage(image, destination);
  if (!bytes) return ErrorOf(bytes);
  if (bytes->bytes() == 0) return CopyOutcome{};
  auto status = device_->Inspect(stream);
  if (Refuses(status)) return StreamError(std::move(status));
  SlotRef slot;
  auto taken = TryTake(bytes->bytes(), stream, status->id, &slot);
  if (!taken) return ErrorOf(taken);
  if (!*taken) {
    if (wait == WaitForSlot::kNo) return WouldBlock();
    auto waited = ring_.WaitAndTake(bytes->bytes());
    if (!waited) return ErrorOf(waited);
    slot = *waited;
  }
  const Filled filled = FillSlot(slot, *bytes, {0, bytes->bytes()}, destination.ptr);
  return SendPlain(filled, stream, status->id);
}

Expected<CopyOutcome> StagerCore::CopyPlain(const Destination& destination, const HostImage& image,
                                            const Stream& stream, WaitForSlot wait) {
  Expected<CopyOutcome> outcome = TryCopyPlain(destination, image, stream, wait);
  CountFailure(outcome);
  return outcome;
}

Expected<CopyOutcome> StagerCore::Skip(MirrorState& mirror, uint64_t bytes, const Stream& stream,
                                       StreamId id) {
  Expected<bool> crossed = mirror.order().Follow(ring_, stream, id);
  if (!crossed) return ErrorOf(crossed);
  Reached(*crossed ? Mark::kSkipAcrossStreams : Mark::kSkip);
  skipped_.AddRelaxed(1);
  skipped_bytes_.AddRelaxed(bytes);
  return CopyOutcome{};
}

// REQUIRES: `stream` is ordered after the mirror's last copy.
Expected<CopyOutcome> StagerCore::SendMirrored(MirrorState& mirror, const ImageBytes& image,
                                               ByteSpan span, const Filled& filled,
                                               const Stream& stream, StreamId id) {
  mirror.Remember(image, span);
  CopyRef copy;
  Expected<void> sent = Enqueue(filled, stream, id, image.bytes(), &copy);
  mirror.Commit(copy, sent.has_value());
  if (!sent) return ErrorOf(sent);
  const bool trimmed = span.bytes() < image.bytes();
  return CopyOutcome{trimmed ? CopyOutcome::Kind::kTrimmed : CopyOutcome::Kind::kIssued,
                     span.bytes()};
}

// One try. It would block when a slot of `*wanted` bytes is needed, `held` holds no such one, and
// none is free.
Expected<CopyOutcome> StagerCore::TryMirrored(MirrorState& mirror, const HostImage& image,
                                              const Stream& stream, HeldSlot& held,
                                              uint64_t* wanted) {
  auto bytes = CheckedImage(image, mirror.destination());
  if (!bytes) return ErrorOf(bytes);
  if (bytes->bytes() == 0) return CopyOutcome{};
  auto status = device_->Inspect(stream);
  if (Refuses(status)) return StreamError(std::move(status));
  const ByteSpan span = mirror.ToSend(*bytes, options_.min_trim_bytes);
  if (span.empty()) return Skip(mirror, bytes->bytes(), stream, status->id);
  auto enough = TakeInto(held, span.bytes(), stream, status->id);
  if (!enough) return ErrorOf(enough);
  if (!*enough) {
    *wanted = span.bytes();
    return CopyOutcome{CopyOutcome::Kind::kWouldBlock, 0};
  }
  auto ordered = mirror.order().Follow(ring_, stream, status->id);
  if (!ordered) return ErrorOf(ordered);
  const Filled filled = FillSlot(held.Release(), *bytes, span, mirror.destination().ptr);
  return SendMirrored(mirror, *bytes, span, filled, stream, status->id);
}

Expected<CopyOutcome> StagerCore::TryCopyMirrored(MirrorState& mirror, const HostImage& image,
                                                  const Stream& stream, WaitForSlot wait) {
  if (!alive()) return NotAlive();
  HeldSlot held(ring_);
  for (;;) {
    uint64_t wanted = 0;
    {
      MutexLock lock(mirror.mutex());
      auto outcome = TryMirrored(mirror, image, stream, held, &wanted);
      if (!outcome || outcome->kind != CopyOutcome::Kind::kWouldBlock) return outcome;
    }
    if (wait == WaitForSlot::kNo) return WouldBlock();
    // Others may use the mirror while this call waits, so that all is compared anew.
    auto waited = ring_.WaitAndTake(wanted);
    if (!waited) return ErrorOf(waited);
    held.Hold(*waited);
    Reached(Mark::kComparedAnew);
  }
}

Expected<CopyOutcome> StagerCore::CopyMirrored(MirrorState& mirror, const HostImage& image,
                                               const Stream& stream, WaitForSlot wait) {
  Expected<CopyOutcome> outcome = TryCopyMirrored(mirror, image, stream, wait);
  CountFailure(outcome);
  return outcome;
}

}  // namespace h2d::internal
