// The core's life, and what every way of copying shares.
#include "h2d/stager/internal/stager_core.h"

#include <algorithm>
#include <string>
#include <utility>

#include "h2d/stager/internal/checked_image.h"
#include "h2d/stager/internal/state_mark.h"

namespace h2d::internal {
namespace {

// In whole blocks, as slots take their memory.
uint64_t LargestSlotBytes(const StagerOptions& options) noexcept {
  const uint64_t limit = std::min(options.max_pinned_bytes, StagerOptions::kMaxSlotBytes);
  return limit - limit % SlabArena::kBlockBytes;
}

}  // namespace

StagerCore::StagerCore(std::shared_ptr<Device> device, const StagerOptions& options)
    : device_(std::move(device)),
      options_(options),
      largest_slot_bytes_(LargestSlotBytes(options)),
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

Unexpected StagerCore::DoesNotFitLimit(uint64_t bytes) const {
  return ResourceExhausted("A copy of " + std::to_string(bytes) + " bytes, in blocks of " +
                           std::to_string(SlabArena::kBlockBytes) +
                           ", does not fit max_pinned_bytes, " +
                           std::to_string(options_.max_pinned_bytes) + ", or the largest slot, " +
                           std::to_string(StagerOptions::kMaxSlotBytes) + ".");
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
