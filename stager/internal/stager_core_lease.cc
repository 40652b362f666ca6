// Slots that callers write in place.
#include <string>
#include <utility>

#include "h2d/stager/internal/checked_image.h"
#include "h2d/stager/internal/stager_core.h"
#include "h2d/stager/internal/stager_core_send.h"
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

Expected<std::optional<SlotRef>> StagerCore::TryAcquire(uint64_t bytes, WaitForSlot wait) {
  if (!alive()) return NotAlive();
  if (bytes == 0) return InvalidArgument("A lease of 0 bytes was asked for.");
  if (!FitsLimit(bytes)) return DoesNotFitLimit(bytes);
  SlotRef slot;
  auto taken = ring_.TryTake(bytes, /*stream=*/0, &slot);
  if (!taken) return ErrorOf(taken);
  if (!*taken) {
    if (wait == WaitForSlot::kNo) {
      static_cast<void>(WouldBlock());
      return std::nullopt;
    }
    auto waited = ring_.WaitAndTake(bytes);
    if (!waited) return ErrorOf(waited);
    slot = *waited;
  }
  device_->OnHostAccess(slot.bytes, HostAccess::kWrite);
  return slot;
}

Expected<std::optional<SlotRef>> StagerCore::Acquire(uint64_t bytes, WaitForSlot wait) {
  return Counted(TryAcquire(bytes, wait));
}

void StagerCore::DropLease(const SlotRef& slot) noexcept {
  if (!in_own_process()) return;
  Reached(closed_.Load() == 0 ? Mark::kLeaseDropped : Mark::kLeaseOutlivedStager);
  ring_.HandBack(slot);
}

Expected<CopyOutcome> StagerCore::TrySubmitPlain(const SlotRef& slot,
                                                 const Destination& destination,
                                                 const Stream& stream, bool* consumed) {
  if (!alive()) return NotAlive();
  if (auto fits = CheckLease(slot, destination); !fits) return ErrorOf(fits);
  auto status = device_->Inspect(stream);
  if (Refuses(status)) return StreamError(std::move(status));
  *consumed = true;
  // The holder's stores since the lease was taken, as far as they may reach.
  device_->OnHostAccess(slot.bytes, HostAccess::kWrite);
  return SendPlain({slot, slot.bytes, destination.ptr}, stream, status->id);
}

Expected<CopyOutcome> StagerCore::TrySubmitMirrored(const SlotRef& slot, MirrorState& mirror,
                                                    const Stream& stream, bool* consumed) {
  if (!alive()) return NotAlive();
  MutexLock lock(mirror.mutex());
  const Destination& destination = mirror.destination();
  if (auto fits = CheckLease(slot, destination); !fits) return ErrorOf(fits);
  auto status = device_->Inspect(stream);
  if (Refuses(status)) return StreamError(std::move(status));
  device_->OnHostAccess(slot.bytes, HostAccess::kWrite);
  const ImageBytes image{.values = slot.bytes.data(),
                         .value_bytes = slot.bytes.size(),
                         .element_bytes = destination.element_bytes};
  const ByteSpan span = mirror.ToSend(image, options_.min_trim_bytes);
  if (span.empty()) {
    auto skipped = Skip(mirror, image.bytes(), stream, status->id);
    *consumed = skipped.has_value();
    if (*consumed) ring_.HandBack(slot);
    return skipped;
  }
  auto ordered = mirror.order().Follow(ring_, stream, status->id);
  if (!ordered) return ErrorOf(ordered);
  *consumed = true;
  const Filled filled{slot, slot.bytes.subspan(span.begin, span.bytes()),
                      destination.ptr + span.begin};
  return SendMirrored(mirror, image, span, filled, stream, status->id);
}

Expected<CopyOutcome> StagerCore::SubmitPlain(const SlotRef& slot, const Destination& destination,
                                              const Stream& stream, bool* consumed) {
  *consumed = false;
  return Counted(TrySubmitPlain(slot, destination, stream, consumed));
}

Expected<CopyOutcome> StagerCore::SubmitMirrored(const SlotRef& slot, MirrorState& mirror,
                                                 const Stream& stream, bool* consumed) {
  *consumed = false;
  return Counted(TrySubmitMirrored(slot, mirror, stream, consumed));
}

}  // namespace h2d::internal
