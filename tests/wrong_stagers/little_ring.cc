#include "h2d/tests/wrong_stagers/little_ring.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace h2d::testing {

Expected<std::shared_ptr<LittleRing>> LittleRing::Create(std::shared_ptr<Device> device,
                                                         const StagerOptions& options, Flaw flaw) {
  std::shared_ptr<LittleRing> ring(new LittleRing(std::move(device), options, flaw));
  for (uint32_t i = 0; i < options.max_slots; ++i) {
    Expected<PinnedBuffer> memory = ring->device_->AllocatePinned(kSlotBytes);
    if (!memory) return ErrorOf(memory);
    Expected<Event> event = ring->device_->CreateEvent();
    if (!event) return ErrorOf(event);
    ring->slots_.push_back({.memory = std::move(*memory), .event = std::move(*event)});
  }
  return ring;
}

LittleRing::~LittleRing() {
  for (Slot& slot : slots_) {
    if (slot.lost) slot.memory.Leak();
    if (!slot.in_flight || flaw_ == Flaw::kFreesInUse) continue;
    const Event* event = &EventOf(static_cast<size_t>(&slot - slots_.data()));
    const auto done = device_->WaitAny(std::span(&event, 1), {.timeout = std::chrono::seconds(10)});
    if (!done || !*done) slot.memory.Leak();
  }
}

Event& LittleRing::EventOf(size_t slot) {
  return slots_[flaw_ == Flaw::kOneEventForTwoSlots ? slot / 2 * 2 : slot].event;
}

std::span<std::byte> LittleRing::BytesOf(size_t slot, uint64_t bytes) const {
  return slots_[slot].memory.bytes().first(bytes);
}

std::optional<size_t> LittleRing::TakeFree() {
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].taken) continue;
    slots_[i].taken = true;
    slots_[i].listed = ++listed_;
    return i;
  }
  return std::nullopt;
}

void LittleRing::Free(Slot& slot) {
  slot.in_flight = false;
  slot.taken = false;
  ++slot.generation;
}

void LittleRing::Sweep() {
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (!slots_[i].in_flight) continue;
    const Expected<EventState> state = device_->Query(EventOf(i));
    const bool complete =
        state ? *state == EventState::kComplete : flaw_ == Flaw::kErrorIsCompletion;
    if (!complete) continue;
    Free(slots_[i]);
    if (flaw_ != Flaw::kFreesWhatWasListed) continue;
    for (Slot& other : slots_) {
      if (other.in_flight && other.stream == slots_[i].stream && other.listed < slots_[i].listed) {
        Free(other);
      }
    }
  }
}

Expected<std::optional<size_t>> LittleRing::Take(bool wait) {
  const auto deadline = device_->Now() + options_.wait_timeout;
  while (true) {
    {
      MutexLock lock(mutex_);
      if (auto slot = TakeFree()) return slot;
      Sweep();
      if (auto slot = TakeFree()) return slot;
      if (flaw_ == Flaw::kNoWait) {
        const auto oldest = std::ranges::min_element(slots_, {}, [](const Slot& slot) {
          return slot.in_flight ? slot.listed : ~uint64_t{0};
        });
        if (oldest->in_flight) Free(*oldest);
        if (auto slot = TakeFree()) return slot;
      }
    }
    if (!wait && flaw_ != Flaw::kTryWaits) return std::nullopt;
    if (device_->Now() >= deadline) return Unavailable("No slot became free in time.");
    const auto polled = device_->WaitAny({}, {.timeout = std::chrono::microseconds(50)});
    if (!polled) return Unexpected(polled.error());
  }
}

void LittleRing::GiveBack(size_t slot) {
  MutexLock lock(mutex_);
  Free(slots_[slot]);
}

Expected<Origin> LittleRing::Enqueue(size_t slot, uint64_t bytes, DevicePtr destination,
                                     const Stream& stream, StreamId id) {
  const bool early = flaw_ == Flaw::kRecordBeforeCopy;
  Expected<void> recorded;
  if (early) recorded = device_->Record(EventOf(slot), stream);
  Expected<void> copied;
  if (bytes > 1 && flaw_ == Flaw::kTwoCopies) {
    copied = device_->CopyAsync(destination + 1, BytesOf(slot, bytes).subspan(1), stream);
    bytes = 1;
  }
  if (bytes != 0 && copied) {
    copied = device_->CopyAsync(destination, BytesOf(slot, bytes), stream);
  }
  if (!early) recorded = device_->Record(EventOf(slot), stream);
  MutexLock lock(mutex_);
  Slot& taken = slots_[slot];
  Origin origin{slot, taken.generation, id, stream.handle(), !recorded.has_value()};
  taken.stream = id;
  // Without a record its end cannot be learnt: it stays taken for ever.
  taken.in_flight = recorded.has_value();
  taken.lost = !recorded.has_value();
  if (flaw_ == Flaw::kFreedAtEnqueue) Free(taken);
  if (!copied || !recorded) origin.unknown = true;
  return origin;
}

Expected<void> LittleRing::MakeStreamWait(const Stream& stream, StreamId id, const Origin& origin) {
  const bool same =
      flaw_ == Flaw::kHandleIsIdentity ? stream.handle() == origin.handle : id == origin.stream;
  if (origin.generation == 0 || same) return {};
  if (origin.unknown) return Unavailable("The order after the last copy is not known.");
  if (flaw_ == Flaw::kWaitsForRecycledSlot) {
    {
      MutexLock lock(mutex_);
      if (slots_[origin.slot].generation != origin.generation) return {};
    }
    return device_->WaitEvent(stream, EventOf(origin.slot));
  }
  MutexLock lock(mutex_);
  if (slots_[origin.slot].generation != origin.generation) return {};
  return device_->WaitEvent(stream, EventOf(origin.slot));
}

}  // namespace h2d::testing
