// How the ring grows: it never waits, and gives idle memory back only to make room.
#include <algorithm>
#include <bit>
#include <utility>

#include "h2d/stager/internal/slot_ring.h"
#include "h2d/stager/internal/state_mark.h"

namespace h2d::internal {
namespace {

// Larger slabs take the driver longer than a step lasts (1 MiB: 0.84 ms, 16 MiB: 8.3 ms, measured
// on an H200), so one is larger only when one value is.
constexpr uint64_t kMaxSlabBytes = uint64_t{1} << 20;

// How many slots the ring grows by ahead of need, at most: so many events take the driver some tens
// of microseconds.
constexpr uint32_t kMaxSlotsAhead = 16;

// Of slots up to this size a few dozen stay in a core's caches.
constexpr uint64_t kSmallSlotBytes = 4096;

}  // namespace

Expected<void> SlotRing::Prepare() {
  const uint64_t slot = InBlocks(options_.slot_bytes);
  const uint64_t slots_a_slab = std::max<uint64_t>(1, kMaxSlabBytes / slot);
  for (uint64_t left = options_.initial_slots; left > 0;) {
    const uint64_t slots = std::min(left, slots_a_slab);
    auto memory = device_.AllocatePinned(slots * slot);
    if (!memory) return ErrorOf(memory);
    MutexLock lock(mutex_);
    CommitSlab(std::move(*memory));
    left -= slots;
  }
  for (uint32_t i = 0; i < options_.initial_slots; ++i) {
    auto event = device_.CreateEvent();
    if (!event) return ErrorOf(event);
    MutexLock lock(mutex_);
    CommitEvent(std::move(*event));
  }
  return {};
}

// What to allocate so that a slot of `bytes` bytes can be taken, or nothing when the limits or the
// slots in use forbid it.
std::optional<SlotRing::Growth> SlotRing::PlanGrowth(uint64_t bytes) {
  Growth growth;
  if (in_use_ >= options_.max_slots) return std::nullopt;
  const bool any_free = AnyFree();
  if (!any_free && events_made_ == slots_.size()) return std::nullopt;
  growth.events = any_free ? 0 : MissingEvents();
  if (bytes > 0 && !arena_.Fits(bytes) && !MakeRoomForSlab(bytes, growth)) return std::nullopt;
  reserved_bytes_ += growth.slab_bytes;
  return growth;
}

// One more slot, or all of the spare events when the first is needed: a ring that is as large as it
// may be makes them once and then allocates nothing.
uint32_t SlotRing::MissingEvents() const {
  const auto spare = static_cast<uint32_t>(slots_.size()) - events_made_;
  return events_made_ < options_.max_slots ? 1 : spare;
}

// Whether more slots of `bytes` bytes would be worth their memory, by the last sweep.
bool SlotRing::IsSmallFor(uint64_t bytes) const {
  if (!grows_ahead_ || events_made_ >= options_.max_slots || LooksAtEach(bytes)) return false;
  return swept_ == Swept::kFewBehind || (swept_ == Swept::kFew && bytes <= kSmallSlotBytes);
}

// What to allocate besides a slot that was taken, because the last sweep was hardly worth it: as
// many slots again, and memory for one more at least. Never makes room by retiring a slab.
std::optional<SlotRing::Growth> SlotRing::PlanGrowthAhead(uint64_t bytes) {
  if (!IsSmallFor(bytes)) return std::nullopt;
  Growth growth;
  growth.events =
      std::min({events_made_, kMaxSlotsAhead, uint32_t{options_.max_slots} - events_made_});
  if (bytes > 0) {
    uint64_t room = arena_.RoomFor(bytes);
    if (room == 0) {
      const uint64_t owned = arena_.pinned_bytes() + reserved_bytes_;
      const uint64_t needed = InBlocks(bytes);
      if (owned > options_.max_pinned_bytes || needed > options_.max_pinned_bytes - owned ||
          !MakeRoomForSlab(bytes, growth)) {
        return std::nullopt;
      }
      room = growth.slab_bytes / needed;
    }
    // A slot without memory would take that of others.
    growth.events = static_cast<uint32_t>(std::min<uint64_t>(growth.events, room));
  }
  reserved_bytes_ += growth.slab_bytes;
  Reached(Mark::kGrowthAhead);
  return growth;
}

// Sizes the next slab: as much again as there is, between a usual slot and 1 MiB, but never less
// than the value needs nor more than the limit leaves. Idle slabs give way when it leaves too
// little: memory idle in one size must not keep another from being served (I10).
bool SlotRing::MakeRoomForSlab(uint64_t bytes, Growth& growth) {
  const uint64_t needed = InBlocks(bytes);
  const uint64_t owned = arena_.pinned_bytes() + reserved_bytes_;
  const uint64_t limit = options_.max_pinned_bytes;
  if (needed > limit || owned - arena_.idle_bytes() > limit - needed) return false;
  while (arena_.pinned_bytes() + reserved_bytes_ > limit - needed) {
    growth.retired.push_back(std::move(*arena_.RemoveIdleSlab()));
    ++stats_.slabs_retired;
    Reached(Mark::kSlabRetired);
  }
  const uint64_t room = limit - arena_.pinned_bytes() - reserved_bytes_;
  const uint64_t usual =
      std::max(InBlocks(options_.slot_bytes), std::min(arena_.pinned_bytes(), kMaxSlabBytes));
  // Large slabs come in powers of two, so that the device's cache can serve one with another that
  // was retired, and holds no more than one of each.
  const uint64_t wanted =
      needed > kMaxSlabBytes ? std::bit_ceil(needed) : std::min(usual, kMaxSlabBytes);
  growth.slab_bytes =
      std::max(needed, std::min(wanted, room / SlabArena::kBlockBytes * SlabArena::kBlockBytes));
  return true;
}

Expected<void> SlotRing::Grow(Growth growth) {
  growth.retired.clear();
  std::vector<Event> events;
  events.reserve(growth.events);
  std::optional<PinnedBuffer> memory;
  Expected<void> result;
  while (events.size() < growth.events && result) {
    auto made = device_.CreateEvent();
    if (made) {
      events.push_back(std::move(*made));
    } else {
      result = ErrorOf(made);
    }
  }
  if (growth.slab_bytes > 0 && result) {
    auto allocated = device_.AllocatePinned(growth.slab_bytes);
    if (allocated) {
      memory.emplace(std::move(*allocated));
    } else {
      result = ErrorOf(allocated);
    }
  }
  MutexLock lock(mutex_);
  reserved_bytes_ -= growth.slab_bytes;
  if (!result) {
    Reached(Mark::kGrowthRefused);
    ++stats_.growth_failures;
    grows_ahead_ = false;
  } else if (growth.slab_bytes > 0) {
    Reached(stream_count_ == 0 ? Mark::kGrowth : Mark::kGrowthUnderPressure);
    ++stats_.growths;
  }
  // What was allocated is taken over also when the rest of a growth failed.
  for (Event& event : events) CommitEvent(std::move(event));
  if (memory) CommitSlab(std::move(*memory));
  NotifyWaiters();
  return result;
}

// Several threads may have made events at once; those too many are destroyed.
void SlotRing::CommitEvent(Event event) {
  if (events_made_ == slots_.size()) return;
  slots_[events_made_].event = std::move(event);
  free_.push_back(events_made_++);
}

void SlotRing::CommitSlab(PinnedBuffer memory) {
  arena_.AddSlab(std::move(memory));
  stats_.pinned_bytes_most = std::max(stats_.pinned_bytes_most, arena_.pinned_bytes());
}

}  // namespace h2d::internal
