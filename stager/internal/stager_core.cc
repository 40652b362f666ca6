// The core's life, and what every way of copying shares.
#include "h2d/stager/internal/stager_core.h"

#include <algorithm>
#include <string>
#include <utility>

#include "h2d/stager/internal/checked_image.h"
#include "h2d/stager/internal/state_mark.h"

namespace h2d::internal {

StagerCore::StagerCore(std::shared_ptr<Device> device, const StagerOptions& options)
    : device_(std::move(device)),
      options_(options),
      registry_(MirrorRegistry::Of(device_->MemorySpace())),
      ring_(*device_, options) {}

void StagerCore::Close() noexcept {
  closed_.Store(1);
  if (in_own_process()) ring_.Drain();
}

Unexpected StagerCore::NotAlive() const {
  if (in_own_process()) return FailedPrecondition("The stager is gone.");
  return FailedPrecondition(
      "The stager was made before this process was forked; a device does not survive a fork.");
}

Expected<void> StagerCore::CheckAlive() const {
  if (!alive()) return NotAlive();
  return {};
}

Unexpected StagerCore::StreamError(Expected<StreamStatus> status) {
  if (!status) return ErrorOf(status);
  Reached(Mark::kCaptureRefused);
  return FailedPrecondition(
      "The stream is being captured: a recorded copy would read its slot again at every replay. "
      "Copy before the capture, or on another stream.");
}

Expected<void> StagerCore::CheckFitsLimit(uint64_t bytes) const {
  const uint64_t limit = std::min(options_.max_pinned_bytes, StagerOptions::kMaxSlotBytes);
  if (bytes <= limit && InBlocks(bytes) <= limit) [[likely]]
    return {};
  return ResourceExhausted("A copy of " + std::to_string(bytes) + " bytes, in blocks of " +
                           std::to_string(SlabArena::kBlockBytes) +
                           ", does not fit max_pinned_bytes, " +
                           std::to_string(options_.max_pinned_bytes) + ", or the largest slot, " +
                           std::to_string(StagerOptions::kMaxSlotBytes) + ".");
}

Expected<std::optional<SlotRef>> StagerCore::TryTake(uint64_t bytes, const Stream& stream,
                                                     StreamId id) {
  if (auto fits = CheckFitsLimit(bytes); !fits) return ErrorOf(fits);
  auto slot = ring_.TryTake(bytes);
  if (slot && *slot) [[likely]]
    return slot;
  return ring_.RecordQuarantined(stream, id) ? ring_.TryTake(bytes) : std::move(slot);
}

// Whether `held` holds a slot of at least `bytes` bytes now.
Expected<bool> StagerCore::TakeInto(HeldSlot& held, uint64_t bytes, const Stream& stream,
                                    StreamId id) {
  if (held && held.slot().bytes.size() >= bytes) return true;
  held.HandBack();  // who waits for a slot holds none, or two could wait for each other's
  auto slot = TryTake(bytes, stream, id);
  if (!slot) return ErrorOf(slot);
  if (*slot) held.Hold(**slot);
  return slot->has_value();
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

CopyOutcome StagerCore::WouldBlock() noexcept {
  Reached(Mark::kWouldBlock);
  would_block_.AddRelaxed(1);
  return CopyOutcome{CopyOutcome::Kind::kWouldBlock, 0};
}

StagerStats StagerCore::Stats() const noexcept {
  if (!in_own_process()) return {};
  StagerStats stats = ring_.Stats();
  stats.copies_skipped = skipped_.LoadRelaxed();
  stats.would_block = would_block_.LoadRelaxed();
  stats.errors = errors_.LoadRelaxed();
  stats.copies_asked = stats.copies_issued + stats.copies_trimmed + stats.copies_skipped +
                       stats.would_block + stats.errors - failed_once_enqueued_.LoadRelaxed();
  stats.bytes_asked += skipped_bytes_.LoadRelaxed();
  return stats;
}

}  // namespace h2d::internal
