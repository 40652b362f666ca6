#include "h2d/stager/internal/small_slots.h"

#include <algorithm>
#include <utility>

namespace h2d::internal {
namespace {

// So many are made before the device is asked which came back.
constexpr uint32_t kMadeUnasked = 4;

}  // namespace

SmallSlots::SmallSlots(std::shared_ptr<Device> device, uint64_t slot_bytes, uint32_t max_slots)
    : device_(device),
      slot_bytes_(slot_bytes),
      max_slots_(max_slots),
      tracker_(std::move(device), ReleaseCore::Unlimited(),
               ReleaseCore::OnFailedRecord::kKeepForItsStream) {
  free_.reserve(max_slots);
}

// The slots are divided among the streams that use any and one that may come.
bool SmallSlots::HasShare(StreamId stream) const {
  const auto found = in_use_.find(stream);
  if (found == in_use_.end()) return true;
  return found->second < std::max<size_t>(max_slots_ / (in_use_.size() + 1), 1);
}

bool SmallSlots::TakeShare(StreamId stream) {
  if (!HasShare(stream)) return false;
  ++in_use_[stream];
  ++counts_.in_use;
  return true;
}

void SmallSlots::EndShare(StreamId stream) {
  const auto found = in_use_.find(stream);
  if (--found->second == 0) in_use_.erase(found);
  --counts_.in_use;
}

std::optional<PinnedBuffer> SmallSlots::TakeFree(StreamId stream) {
  MutexLock lock(mutex_);
  if (free_.empty() || !TakeShare(stream)) return std::nullopt;
  PinnedBuffer slot = std::move(free_.back());
  free_.pop_back();
  return slot;
}

std::optional<PinnedBuffer> SmallSlots::TryTake(StreamId stream, const Stream& named) {
  if (auto slot = TakeFree(stream)) return slot;
  bool ask = false;
  {
    MutexLock lock(mutex_);
    ask = made_ >= std::min(kMadeUnasked, max_slots_) || !HasShare(stream);
  }
  if (ask) {
    // Slots whose records failed, all of a stream's share perhaps, come back with a new record.
    static_cast<void>(tracker_.FlushKnown(stream, named));
    static_cast<void>(tracker_.Poll(stream));
    if (auto slot = TakeFree(stream)) return slot;
  }
  {
    MutexLock lock(mutex_);
    if (made_ >= max_slots_ || !TakeShare(stream)) return std::nullopt;
    ++made_;
  }
  auto made = device_->AllocatePinned(slot_bytes_);
  MutexLock lock(mutex_);
  if (made) {
    counts_.pinned_bytes += slot_bytes_;
    return std::move(*made);
  }
  --made_;
  EndShare(stream);
  return std::nullopt;
}

void SmallSlots::GiveBack(PinnedBuffer slot, StreamId stream) {
  MutexLock lock(mutex_);
  free_.push_back(std::move(slot));
  EndShare(stream);
}

Expected<void> SmallSlots::InFlight(PinnedBuffer slot, StreamId id, const Stream& stream,
                                    uint64_t bytes, bool copied) {
  if (copied) {
    MutexLock lock(mutex_);
    ++counts_.copies;
    counts_.bytes += bytes;
  }
  auto counted = tracker_.Reserve({.id = id, .capturing = false}, stream, 0);
  HeldSource held(
      [this, id, memory = std::move(slot)]() mutable { GiveBack(std::move(memory), id); }, 0);
  if (!counted) {  // not reached: there is no limit
    held.Leak();
    return counted;
  }
  return tracker_.PushAndFlush(std::move(held), id, stream, 0);
}

SmallSlots::Counts SmallSlots::counts() const noexcept {
  MutexLock lock(mutex_);
  return counts_;
}

}  // namespace h2d::internal
