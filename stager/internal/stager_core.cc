#include "h2d/stager/internal/stager_core.h"

#include <string>
#include <utility>

#include "h2d/stager/internal/checked_image.h"
#include "h2d/stager/internal/state_mark.h"

namespace h2d::internal {
namespace {

Expected<void> CheckLease(const SlotRef& slot, const Destination& destination) {
  auto room = CheckedDestination(destination);
  if (!room) return ErrorOf(room);
  const uint64_t bytes = slot.bytes.size();
  if (destination.ptr.is_null()) {
    return InvalidArgument("The destination of a lease of " + std::to_string(bytes) +
                           " bytes is null.");
  }
  if (bytes > *room || bytes % destination.element_bytes != 0) {
    return InvalidArgument("A lease of " + std::to_string(bytes) +
                           " bytes does not fit a destination of " +
                           std::to_string(destination.count) + " elements of " +
                           std::to_string(destination.element_bytes) + " bytes.");
  }
  return {};
}

}  // namespace

StagerCore::StagerCore(std::shared_ptr<Device> device, const StagerOptions& options)
    : device_(std::move(device)),
      options_(options),
      registry_(MirrorRegistry::Of(device_->MemorySpace())),
      ring_(*device_, options) {}

void StagerCore::Close() noexcept {
  closed_.Store(1);
  if (in_own_process()) ring_.Drain();
}

Expected<void> StagerCore::CheckAlive() const {
  if (!in_own_process()) {
    return FailedPrecondition(
        "The stager was made before this process was forked; a device does not survive a fork.");
  }
  if (closed_.Load() != 0) return FailedPrecondition("The stager is gone.");
  return {};
}

Expected<StreamId> StagerCore::CheckStream(const Stream& stream) const {
  auto status = device_->Inspect(stream);
  if (!status) return ErrorOf(status);
  if (status->capturing) {
    Reached(Mark::kCaptureRefused);
    return FailedPrecondition(
        "The stream is being captured: a recorded copy would read its slot again at every replay. "
        "Copy before the capture, or on another stream.");
  }
  return status->id;
}

Expected<std::optional<SlotRef>> StagerCore::Take(uint64_t bytes, WaitForSlot wait) {
  if (bytes > options_.max_pinned_bytes) {
    return ResourceExhausted("A copy of " + std::to_string(bytes) +
                             " bytes does not fit max_pinned_bytes, " +
                             std::to_string(options_.max_pinned_bytes) + ".");
  }
  if (wait == WaitForSlot::kNo) return ring_.TryTake(bytes);
  auto slot = ring_.TakeOrWait(bytes);
  if (!slot) return ErrorOf(slot);
  return std::optional<SlotRef>(*slot);
}

StagerCore::Filled StagerCore::FillSlot(const SlotRef& slot, const ImageBytes& image, ByteSpan span,
                                        DevicePtr base) {
  const std::span<std::byte> bytes = slot.bytes.first(span.bytes());
  device_->OnHostAccess(bytes, HostAccess::kWrite);
  Fill(image, span, bytes.data());
  return {slot, bytes, base + span.begin};
}

Expected<void> StagerCore::Enqueue(const Filled& filled, const Stream& stream, StreamId id,
                                   CopyRef* copy) {
  Expected<void> copied = device_->CopyAsync(filled.to, filled.bytes, stream);
  Expected<void> recorded = ring_.Publish(filled.slot, stream, id, copy);
  if (!copied) {
    Reached(Mark::kFailedCopyGuarded);
    return copied;
  }
  return recorded;
}

Expected<CopyOutcome> StagerCore::Issued(uint64_t asked, uint64_t sent) noexcept {
  const bool trimmed = sent < asked;
  (trimmed ? trimmed_ : issued_).AddRelaxed(1);
  bytes_asked_.AddRelaxed(asked);
  bytes_sent_.AddRelaxed(sent);
  return CopyOutcome{trimmed ? CopyOutcome::Kind::kTrimmed : CopyOutcome::Kind::kIssued, sent};
}

Expected<CopyOutcome> StagerCore::WouldBlock() noexcept {
  Reached(Mark::kWouldBlock);
  would_block_.AddRelaxed(1);
  return CopyOutcome{CopyOutcome::Kind::kWouldBlock, 0};
}

template <class T>
Expected<T> StagerCore::Counted(Expected<T> result) noexcept {
  if (!result) errors_.AddRelaxed(1);
  return result;
}

// --- Plain copies
// ---------------------------------------------------------------------------------

Expected<CopyOutcome> StagerCore::SendPlain(const Filled& filled, const Stream& stream,
                                            StreamId id) {
  Expected<void> sent = Enqueue(filled, stream, id, nullptr);
  // After the enqueueing, whatever it answered: a mirrored call that overlaps this one in time may
  // count as before it, every later one finds its content forgotten.
  registry_->ForgetOverlapping(filled.to, filled.bytes.size());
  if (!sent) return ErrorOf(sent);
  return Issued(filled.bytes.size(), filled.bytes.size());
}

Expected<CopyOutcome> StagerCore::TryCopyPlain(const Destination& destination,
                                               const HostImage& image, const Stream& stream,
                                               WaitForSlot wait) {
  if (auto alive = CheckAlive(); !alive) return ErrorOf(alive);
  auto bytes = CheckedImage(image, destination);
  if (!bytes) return ErrorOf(bytes);
  if (bytes->bytes() == 0) return CopyOutcome{};
  auto id = CheckStream(stream);
  if (!id) return ErrorOf(id);
  auto slot = Take(bytes->bytes(), wait);
  if (!slot) return ErrorOf(slot);
  if (!*slot) return WouldBlock();
  const Filled filled = FillSlot(**slot, *bytes, {0, bytes->bytes()}, destination.ptr);
  return SendPlain(filled, stream, *id);
}

Expected<CopyOutcome> StagerCore::CopyPlain(const Destination& destination, const HostImage& image,
                                            const Stream& stream, WaitForSlot wait) {
  return Counted(TryCopyPlain(destination, image, stream, wait));
}

// --- Mirrored copies
// ------------------------------------------------------------------------------

Expected<CopyOutcome> StagerCore::Skip(MirrorState& mirror, uint64_t bytes, const Stream& stream,
                                       StreamId id) {
  const Expected<bool> crossed = mirror.OrderAfterLastCopy(ring_, stream, id);
  if (!crossed) return Unexpected(crossed.error());
  Reached(*crossed ? Mark::kSkipAcrossStreams : Mark::kSkip);
  skipped_.AddRelaxed(1);
  bytes_asked_.AddRelaxed(bytes);
  return CopyOutcome{};
}

// REQUIRES: `stream` is ordered after the mirror's last copy.
Expected<CopyOutcome> StagerCore::SendMirrored(MirrorState& mirror, const ImageBytes& image,
                                               ByteSpan span, const Filled& filled,
                                               const Stream& stream, StreamId id) {
  mirror.Remember(image, span);
  CopyRef copy;
  Expected<void> sent = Enqueue(filled, stream, id, &copy);
  mirror.Commit(copy, sent.has_value());
  if (!sent) return ErrorOf(sent);
  return Issued(image.bytes(), span.bytes());
}

// REQUIRES: the mirror's lock is held. Nothing when a slot of `*wanted` bytes is needed, `held` is
// too small for it, and none is free.
Expected<std::optional<CopyOutcome>> StagerCore::TryMirrored(MirrorState& mirror,
                                                             const HostImage& image,
                                                             const Stream& stream, HeldSlot& held,
                                                             uint64_t* wanted) {
  auto bytes = CheckedImage(image, mirror.destination());
  if (!bytes) return ErrorOf(bytes);
  if (bytes->bytes() == 0) return CopyOutcome{};
  auto id = CheckStream(stream);
  if (!id) return ErrorOf(id);
  const ByteSpan span = mirror.ToSend(*bytes, options_.min_trim_bytes);
  if (span.empty()) return Skip(mirror, bytes->bytes(), stream, *id);
  auto enough = TakeInto(held, span.bytes());
  if (!enough) return ErrorOf(enough);
  if (!*enough) {
    *wanted = span.bytes();
    return std::nullopt;
  }
  auto ordered = mirror.OrderAfterLastCopy(ring_, stream, *id);
  if (!ordered) return ErrorOf(ordered);
  const Filled filled = FillSlot(held.Release(), *bytes, span, mirror.destination().ptr);
  return SendMirrored(mirror, *bytes, span, filled, stream, *id);
}

Expected<CopyOutcome> StagerCore::TryCopyMirrored(MirrorState& mirror, const HostImage& image,
                                                  const Stream& stream, WaitForSlot wait) {
  if (auto alive = CheckAlive(); !alive) return ErrorOf(alive);
  HeldSlot held(ring_);
  for (;;) {
    uint64_t wanted = 0;
    {
      MutexLock lock(mirror.mutex());
      auto outcome = TryMirrored(mirror, image, stream, held, &wanted);
      if (!outcome) return ErrorOf(outcome);
      if (*outcome) return **outcome;
    }
    if (wait == WaitForSlot::kNo) return WouldBlock();
    // Others may use the mirror while this call waits, so that all is compared anew.
    auto waited = ring_.TakeOrWait(wanted);
    if (!waited) return ErrorOf(waited);
    held.Hold(*waited);
    Reached(Mark::kComparedAnew);
  }
}

Expected<CopyOutcome> StagerCore::CopyMirrored(MirrorState& mirror, const HostImage& image,
                                               const Stream& stream, WaitForSlot wait) {
  return Counted(TryCopyMirrored(mirror, image, stream, wait));
}

// REQUIRES: the mirror's lock is held. Whether `held` holds a slot of at least `bytes` bytes now.
Expected<bool> StagerCore::TakeInto(HeldSlot& held, uint64_t bytes) {
  if (held && held.slot().bytes.size() >= bytes) return true;
  auto slot = Take(bytes, WaitForSlot::kNo);
  if (!slot) return ErrorOf(slot);
  if (*slot) held.Hold(**slot);
  return slot->has_value();
}

// REQUIRES: the mirror's lock is held. Answers whether there was a slot for the record.
Expected<bool> StagerCore::TryRecord(MirrorState& mirror, const HostImage& image,
                                     const Stream& stream, HeldSlot& held) {
  // The caller's write has happened: what the mirror knew is past, however this call ends.
  mirror.Forget();
  auto bytes = CheckedImage(image, mirror.destination());
  if (!bytes) return ErrorOf(bytes);
  if (bytes->bytes() == 0) return true;
  auto id = CheckStream(stream);
  if (!id) return ErrorOf(id);
  auto enough = TakeInto(held, 0);
  if (!enough || !*enough) return enough;
  auto ordered = mirror.OrderAfterLastCopy(ring_, stream, *id);
  if (!ordered) return ordered;
  CopyRef copy;
  Expected<void> recorded = ring_.Publish(held.Release(), stream, *id, &copy);
  mirror.Remember(*bytes, {0, bytes->bytes()});
  mirror.Commit(copy, recorded.has_value());
  if (!recorded) return ErrorOf(recorded);
  Reached(Mark::kMirrorRecorded);
  return true;
}

Expected<void> StagerCore::RecordMirror(MirrorState& mirror, const HostImage& image,
                                        const Stream& stream) {
  if (auto alive = CheckAlive(); !alive) return Counted(std::move(alive));
  HeldSlot held(ring_);
  for (;;) {
    {
      MutexLock lock(mirror.mutex());
      auto recorded = TryRecord(mirror, image, stream, held);
      if (!recorded) return Counted(Expected<void>(ErrorOf(recorded)));
      if (*recorded) return {};
    }
    auto waited = ring_.TakeOrWait(0);
    if (!waited) return Counted(Expected<void>(ErrorOf(waited)));
    held.Hold(*waited);
  }
}

Expected<bool> StagerCore::Matches(MirrorState& mirror, const HostImage& image) const {
  if (auto alive = CheckAlive(); !alive) return ErrorOf(alive);
  MutexLock lock(mirror.mutex());
  auto bytes = CheckedImage(image, mirror.destination());
  if (!bytes) return ErrorOf(bytes);
  return mirror.Holds(*bytes);
}

void StagerCore::Invalidate(MirrorState& mirror) noexcept {
  if (!in_own_process()) return;
  MutexLock lock(mirror.mutex());
  mirror.ForgetAndMark(ring_);
}

Expected<void> StagerCore::Rebind(MirrorState& mirror, const Destination& destination) const {
  if (auto alive = CheckAlive(); !alive) return alive;
  auto bytes = CheckedMirrorDestination(destination);
  if (!bytes) return ErrorOf(bytes);
  MutexLock lock(mirror.mutex());
  return mirror.Rebind(destination, *bytes);
}

// --- Leases
// ---------------------------------------------------------------------------------------

Expected<std::optional<SlotRef>> StagerCore::Acquire(uint64_t bytes, WaitForSlot wait) {
  if (auto alive = CheckAlive(); !alive) return ErrorOf(alive);
  if (bytes == 0) return InvalidArgument("A lease of 0 bytes was asked for.");
  auto slot = Counted(Take(bytes, wait));
  if (slot && *slot) device_->OnHostAccess((*slot)->bytes, HostAccess::kWrite);
  return slot;
}

void StagerCore::DropLease(const SlotRef& slot) noexcept {
  if (!in_own_process()) return;
  Reached(closed_.Load() == 0 ? Mark::kLeaseDropped : Mark::kLeaseOutlivedStager);
  ring_.HandBack(slot);
}

Expected<CopyOutcome> StagerCore::SubmitPlain(const SlotRef& slot, const Destination& destination,
                                              const Stream& stream, bool* consumed) {
  *consumed = false;
  if (auto alive = CheckAlive(); !alive) return ErrorOf(alive);
  if (auto fits = CheckLease(slot, destination); !fits) return Counted<CopyOutcome>(ErrorOf(fits));
  auto id = CheckStream(stream);
  if (!id) return Counted<CopyOutcome>(ErrorOf(id));
  *consumed = true;
  // The holder's stores since the lease was taken, as far as they may reach.
  device_->OnHostAccess(slot.bytes, HostAccess::kWrite);
  return Counted(SendPlain({slot, slot.bytes, destination.ptr}, stream, *id));
}

Expected<CopyOutcome> StagerCore::SubmitMirrored(const SlotRef& slot, MirrorState& mirror,
                                                 const Stream& stream, bool* consumed) {
  *consumed = false;
  if (auto alive = CheckAlive(); !alive) return ErrorOf(alive);
  MutexLock lock(mirror.mutex());
  const Destination& destination = mirror.destination();
  if (auto fits = CheckLease(slot, destination); !fits) return Counted<CopyOutcome>(ErrorOf(fits));
  auto id = CheckStream(stream);
  if (!id) return Counted<CopyOutcome>(ErrorOf(id));
  device_->OnHostAccess(slot.bytes, HostAccess::kWrite);
  const ImageBytes image{.values = slot.bytes.data(),
                         .value_bytes = slot.bytes.size(),
                         .element_bytes = destination.element_bytes};
  const ByteSpan span = mirror.ToSend(image, options_.min_trim_bytes);
  if (span.empty()) {
    auto skipped = Counted(Skip(mirror, image.bytes(), stream, *id));
    *consumed = skipped.has_value();
    if (*consumed) ring_.HandBack(slot);
    return skipped;
  }
  auto ordered = mirror.OrderAfterLastCopy(ring_, stream, *id);
  if (!ordered) return Counted<CopyOutcome>(ErrorOf(ordered));
  *consumed = true;
  const Filled filled{slot, slot.bytes.subspan(span.begin, span.bytes()),
                      destination.ptr + span.begin};
  return Counted(SendMirrored(mirror, image, span, filled, stream, *id));
}

StagerStats StagerCore::Stats() const noexcept {
  StagerStats stats;
  stats.copies_issued = issued_.LoadRelaxed();
  stats.copies_trimmed = trimmed_.LoadRelaxed();
  stats.copies_skipped = skipped_.LoadRelaxed();
  stats.would_block = would_block_.LoadRelaxed();
  stats.errors = errors_.LoadRelaxed();
  stats.copies_asked = stats.copies_issued + stats.copies_trimmed + stats.copies_skipped +
                       stats.would_block + stats.errors;
  stats.bytes_asked = bytes_asked_.LoadRelaxed();
  stats.bytes_sent = bytes_sent_.LoadRelaxed();
  if (in_own_process()) ring_.AddTo(stats);
  return stats;
}

}  // namespace h2d::internal
