// Copies to plain and to mirrored destinations.
#include <utility>

#include "h2d/stager/internal/checked_image.h"
#include "h2d/stager/internal/stager_core.h"
#include "h2d/stager/internal/stager_core_send.h"
#include "h2d/stager/internal/state_mark.h"

namespace h2d::internal {

Expected<bool> StagerCore::TryTake(uint64_t bytes, const Stream& stream, StreamId id,
                                   SlotRef* slot) {
  if (FitsLimit(bytes) && ring_.TryTakeKnownFree(bytes, id, slot)) [[likely]]
    return true;
  return LookAndTake(bytes, stream, id, slot);
}

Expected<bool> StagerCore::LookAndTake(uint64_t bytes, const Stream& stream, StreamId id,
                                       SlotRef* slot) {
  if (!FitsLimit(bytes)) return DoesNotFitLimit(bytes);
  Expected<bool> taken = ring_.LookAndTake(bytes, id, slot);
  if (taken && *taken) return taken;
  return ring_.RecordQuarantined(stream, id) ? ring_.TryTake(bytes, id, slot) : std::move(taken);
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

// A slot for a copy that found none known to be free. Nothing: the copy would block.
Expected<std::optional<SlotRef>> StagerCore::LookOrWait(uint64_t bytes, const Stream& stream,
                                                        StreamId id, WaitForSlot wait) {
  SlotRef slot;
  auto taken = LookAndTake(bytes, stream, id, &slot);
  if (!taken) return ErrorOf(taken);
  if (*taken) return slot;
  if (wait == WaitForSlot::kNo) return std::nullopt;
  auto waited = ring_.WaitAndTake(bytes);
  if (!waited) return ErrorOf(waited);
  return *waited;
}

Expected<CopyOutcome> StagerCore::TryCopyPlain(const Destination& destination,
                                               const HostImage& image, const Stream& stream,
                                               WaitForSlot wait) {
  if (!alive()) return NotAlive();
  ImageBytes bytes;
  if (!MakeImage(image, destination, &bytes)) return ImageError(image, destination);
  if (bytes.bytes() == 0) return CopyOutcome{};
  ring_.FetchLock();
  auto status = device_->Inspect(stream);
  if (Refuses(status)) return StreamError(std::move(status));
  SlotRef slot;
  if (!FitsLimit(bytes.bytes()) || !ring_.TryTakeKnownFree(bytes.bytes(), status->id, &slot))
      [[unlikely]] {
    auto found = LookOrWait(bytes.bytes(), stream, status->id, wait);
    if (!found) return ErrorOf(found);
    if (!*found) return WouldBlock();
    slot = **found;
  }
  const Filled filled = FillSlot(slot, bytes, {0, bytes.bytes()}, destination.ptr);
  return SendPlain(filled, stream, status->id);
}

Expected<CopyOutcome> StagerCore::CopyPlain(const Destination& destination, const HostImage& image,
                                            const Stream& stream, WaitForSlot wait) {
  Expected<CopyOutcome> outcome = TryCopyPlain(destination, image, stream, wait);
  CountFailure(outcome);
  return outcome;
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
  ImageBytes bytes;
  if (!MakeImage(image, mirror.destination(), &bytes)) {
    return ImageError(image, mirror.destination());
  }
  if (bytes.bytes() == 0) return CopyOutcome{};
  auto status = device_->Inspect(stream);
  if (Refuses(status)) return StreamError(std::move(status));
  const ByteSpan span = mirror.ToSend(bytes, options_.min_trim_bytes);
  if (span.empty()) return Skip(mirror, bytes.bytes(), stream, status->id);
  auto enough = TakeInto(held, span.bytes(), stream, status->id);
  if (!enough) return ErrorOf(enough);
  if (!*enough) {
    *wanted = span.bytes();
    return CopyOutcome{CopyOutcome::Kind::kWouldBlock, 0};
  }
  auto ordered = mirror.order().Follow(ring_, stream, status->id);
  if (!ordered) return ErrorOf(ordered);
  const Filled filled = FillSlot(held.Release(), bytes, span, mirror.destination().ptr);
  return SendMirrored(mirror, bytes, span, filled, stream, status->id);
}

Expected<CopyOutcome> StagerCore::LockAndTry(MirrorState& mirror, const HostImage& image,
                                             const Stream& stream, HeldSlot& held,
                                             uint64_t* wanted) {
  if (!alive()) return NotAlive();
  MutexLock lock(mirror.mutex());
  return TryMirrored(mirror, image, stream, held, wanted);
}

// For a copy that found no slot of `wanted` bytes.
Expected<CopyOutcome> StagerCore::WaitAndCopyMirrored(MirrorState& mirror, const HostImage& image,
                                                      const Stream& stream, uint64_t wanted) {
  HeldSlot held(ring_);
  for (;;) {
    auto waited = ring_.WaitAndTake(wanted);
    if (!waited) return ErrorOf(waited);
    held.Hold(*waited);
    Reached(Mark::kComparedAnew);
    // Others may have used the mirror while this call waited, so that all is compared anew.
    auto outcome = LockAndTry(mirror, image, stream, held, &wanted);
    if (!outcome || outcome->kind != CopyOutcome::Kind::kWouldBlock) return outcome;
  }
}

Expected<CopyOutcome> StagerCore::CopyMirrored(MirrorState& mirror, const HostImage& image,
                                               const Stream& stream, WaitForSlot wait) {
  HeldSlot none(ring_);
  uint64_t wanted = 0;
  Expected<CopyOutcome> outcome = LockAndTry(mirror, image, stream, none, &wanted);
  if (outcome && outcome->kind == CopyOutcome::Kind::kWouldBlock) [[unlikely]] {
    if (wait == WaitForSlot::kNo) {
      outcome = WouldBlock();
    } else {
      outcome = WaitAndCopyMirrored(mirror, image, stream, wanted);
    }
  }
  CountFailure(outcome);
  return outcome;
}

}  // namespace h2d::internal
