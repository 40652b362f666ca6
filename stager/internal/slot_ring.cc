#include "h2d/stager/internal/slot_ring.h"

#include <algorithm>
#include <string>
#include <utility>

#include "h2d/stager/internal/state_mark.h"

namespace h2d::internal {

SlotRing::SlotRing(Device& device, const StagerOptions& options)
    : device_(device),
      options_(options),
      stream_ids_(options.max_slots + kSpareEvents),
      streams_(options.max_slots + kSpareEvents),
      slots_(options.max_slots + kSpareEvents),
      arena_(options.max_slots + kSpareEvents) {
  free_.reserve(slots_.size());
  MutexLock lock(mutex_);
  LookAt(LooksEvery(options.slot_bytes));
}

bool SlotRing::TakeFree(uint64_t bytes, StreamId stream, SlotRef* slot) {
  if (in_use_ >= options_.max_slots) return false;
  StreamList* const own = FindList(stream);
  const bool has_own = own != nullptr && own->free != kNone;
  // For a stream that is not known yet the last one freed is the best guess, whoever used it.
  if (!has_own && (free_.empty() || stream == 0)) TakeOverFree();
  if (!has_own && free_.empty()) return false;
  const uint32_t index = has_own ? own->free : free_.back();
  Slot& taken = slots_[index];
  if (taken.run.blocks != BlocksOf(bytes) && !Refit(taken, bytes)) return false;
  if (has_own) {
    own->free = taken.next;
  } else {
    free_.pop_back();
  }
  Hold(index, bytes, slot);
  return true;
}

// Gives a free slot memory of another size than it had last. When none fits, the other free slots
// give theirs up: memory idle in one size must not keep another from being served (I10).
bool SlotRing::Refit(Slot& slot, uint64_t bytes) {
  GiveBackMemory(slot);
  if (bytes == 0) return true;
  std::optional<BlockRun> run = arena_.Take(bytes);
  if (!run) {
    GiveBackKeptMemory();
    run = arena_.Take(bytes);
  }
  if (!run) return false;
  slot.run = *run;
  slot.memory = arena_.BytesOf(*run, bytes).data();
  return true;
}

void SlotRing::GiveBackMemory(Slot& slot) {
  arena_.GiveBack(slot.run);
  slot.run = BlockRun();
  slot.memory = nullptr;
}

void SlotRing::GiveBackKeptMemory() {
  for (const uint32_t index : free_) GiveBackMemory(slots_[index]);
  for (const StreamList& list : Lists()) {
    for (uint32_t i = list.free; i != kNone; i = slots_[i].next) GiveBackMemory(slots_[i]);
  }
}

// Makes the free slots of a stream those of all, in their order.
void SlotRing::MoveFree(StreamList& list) {
  const auto first = static_cast<std::ptrdiff_t>(free_.size());
  for (uint32_t i = std::exchange(list.free, kNone); i != kNone; i = slots_[i].next)
    free_.push_back(i);
  std::reverse(free_.begin() + first, free_.end());
}

// Makes the free slots of one of the streams those of all, if one has any.
void SlotRing::TakeOverFree() {
  const std::span<StreamList> lists = Lists();
  const auto with_free =
      std::ranges::find_if(lists, [](const StreamList& list) { return list.free != kNone; });
  if (with_free != lists.end()) MoveFree(*with_free);
}

bool SlotRing::AnyFree() const {
  return !free_.empty() ||
         std::ranges::any_of(Lists(), [](const StreamList& list) { return list.free != kNone; });
}

// Sweeps stream after stream, each until it has nothing more to give: a sweep frees a part of a
// list, and a large copy may need the memory of all of it.
Expected<bool> SlotRing::TakeFreeOrSwept(uint64_t bytes, StreamId stream, SlotRef* slot) {
  if (TakeFree(bytes, stream, slot)) return true;
  std::array<StreamId, StagerOptions::kMaxSlots> room;
  for (const StreamId swept : StreamsFrom(room)) {
    for (;;) {
      Expected<bool> freed = Sweep(swept);
      if (!freed) return freed;
      if (!*freed) break;
      if (TakeFree(bytes, stream, slot)) return true;
    }
  }
  return false;
}

Expected<bool> SlotRing::LookAndTake(uint64_t bytes, StreamId stream, SlotRef* slot) {
  std::optional<Error> refused;
  return LookAndTake(bytes, stream, slot, refused);
}

// Looks for completions, then grows.
Expected<bool> SlotRing::LookAndTake(uint64_t bytes, StreamId stream, SlotRef* slot,
                                     std::optional<Error>& refused) {
  LookAhead(bytes, stream);
  for (;;) {
    std::optional<Growth> growth;
    bool has_slot = false;
    {
      MutexLock lock(mutex_);
      swept_ = Swept::kEnough;
      Expected<bool> taken = TakeFreeOrSwept(bytes, stream, slot);
      if (!taken) return taken;
      has_slot = *taken;
      if (has_slot) LookAt(std::min(look_at_, in_use_ + LooksNext(bytes)));
      if (!refused) growth = has_slot ? PlanGrowthAhead(bytes) : PlanGrowth(bytes);
      if (has_slot && !growth) return true;
      if (!growth) {
        // Decided in the section that found no slot, or one handed back since would be overlooked.
        if (!AnythingToWaitFor())
          return refused ? Unexpected(*refused) : NothingCanBecomeFree(bytes);
        Reached(Mark::kRingFull);
        return false;
      }
    }
    Expected<void> grown = Grow(std::move(*growth));
    if (has_slot) return true;
    if (grown) continue;
    if (options_.on_growth_failure == OnGrowthFailure::kError) return ErrorOf(grown);
    refused = std::move(grown).error();
  }
}

// Quarantined slots alone are nothing to wait for: no event stands for them.
bool SlotRing::AnythingToWaitFor() const {
  return in_use_ > quarantined_ || pinned_free_ > 0 || reserved_bytes_ > 0;
}

Unexpected SlotRing::NothingCanBecomeFree(uint64_t bytes) const {
  return ResourceExhausted("No slot of " + std::to_string(bytes) +
                           " bytes can become free: none is in flight or held, " +
                           std::to_string(quarantined_) + " of max_slots " +
                           std::to_string(options_.max_slots) + " are quarantined, and " +
                           std::to_string(arena_.pinned_bytes()) + " of max_pinned_bytes " +
                           std::to_string(options_.max_pinned_bytes) + " are pinned.");
}

void SlotRing::HandBack(const SlotRef& slot) noexcept {
  MutexLock lock(mutex_);
  CountMostInUse();
  Free(slot.index, nullptr);
  NotifyWaiters();
}

void SlotRing::CountQuarantined() {
  Reached(Mark::kQuarantine);
  ++quarantined_;
}

Expected<bool> SlotRing::MakeStreamWait(const Stream& stream, const CopyRef& copy) {
  uint32_t index = copy.index;
  {
    MutexLock lock(mutex_);
    const Slot& slot = slots_[index];
    if (slot.generation != copy.generation) {
      Reached(Mark::kOriginComplete);
      return false;
    }
    if (slot.state != State::kInFlight) {  // quarantined, or about to be recorded once more
      index = RecordedAfter(slot);
      if (index == kNone) {
        Reached(Mark::kOriginUnknown);
        return Unavailable(
            "The mirror's last copy, on stream " + std::to_string(copy.stream) +
            ", could not be recorded, so no other stream can be ordered after it; "
            "copy on that stream again first, or make a new mirror once it is idle.");
      }
      Reached(Mark::kOriginCovered);
    }
    ++slots_[index].pins;
  }
  Expected<void> waits = device_.WaitEvent(stream, *slots_[index].event);
  MutexLock lock(mutex_);
  Unpin(index);
  if (!waits) return ErrorOf(waits);
  ++stats_.stream_waits;
  Reached(Mark::kStreamWait);
  return true;
}

bool SlotRing::KnownComplete(const CopyRef& copy) const noexcept {
  MutexLock lock(mutex_);
  return slots_[copy.index].generation != copy.generation;
}

StagerStats SlotRing::Stats() const noexcept {
  MutexLock lock(mutex_);
  StagerStats stats = stats_;
  for (const StreamList& list : Lists()) list.counts.AddTo(stats);
  stats.slots_in_use = in_use_;
  stats.slots_in_use_most = std::max(stats.slots_in_use_most, in_use_);
  stats.slots_quarantined = quarantined_;
  stats.pinned_bytes = arena_.pinned_bytes();
  return stats;
}

}  // namespace h2d::internal
