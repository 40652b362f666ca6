// The ring: which slots are free, held, in flight or quarantined, and how that is learnt.
#ifndef H2D_STAGER_INTERNAL_SLOT_RING_H_
#define H2D_STAGER_INTERNAL_SLOT_RING_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "h2d/device/device.h"
#include "h2d/device/sync.h"
#include "h2d/stager/internal/slab_arena.h"
#include "h2d/stager/stager_options.h"
#include "h2d/stager/stager_stats.h"

namespace h2d::internal {

// A slot that its holder may write and enqueue. Whoever holds one hands it to `Publish` or
// `HandBack`, exactly once.
struct SlotRef {
  uint32_t index = 0;
  std::span<std::byte> bytes;  // empty for a slot without memory
};

// What a copy that was enqueued counts for in the statistics.
struct SentBytes {
  uint64_t asked = 0;  // of the image; 0: no copy, only a record
  uint64_t sent = 0;   // of the span that travelled
};

// What copies have counted for so far.
struct CopyCounts {
  uint64_t copies = 0;
  uint64_t trimmed = 0;  // of these
  uint64_t bytes_asked = 0;
  uint64_t bytes_saved = 0;  // of these, modulo 2^64: a step may send more than changed

  void Add(const SentBytes& bytes) noexcept {
    if (bytes.asked == 0) return;
    ++copies;
    bytes_asked += bytes.asked;
    if (bytes.sent == bytes.asked) return;
    if (bytes.sent < bytes.asked) ++trimmed;
    bytes_saved += bytes.asked - bytes.sent;
  }
  void AddTo(StagerStats& stats) const noexcept {
    stats.copies_issued += copies - trimmed;
    stats.copies_trimmed += trimmed;
    stats.bytes_asked += bytes_asked;
    stats.bytes_sent += bytes_asked - bytes_saved;
  }
};

// A copy that was enqueued once, as a mirror remembers it: still that one, or long complete.
struct CopyRef {
  uint32_t index = 0;
  uint64_t generation = 0;  // 0: none
  StreamId stream = 0;
};

// The life of a slot: free, held (its holder writes and enqueues), in flight (its event was
// recorded after its copy) or quarantined (the record failed), free again.
//
// A slot is memory, which is free as soon as its completion was observed, and an event, which is
// reused only when nobody looks at it any more: whoever waits for an event outside the lock *pins*
// the slot, so that no wait can catch a later record (I4). A generation that moved on says
// complete.
//
// Completion is learnt when nothing is known free, one sweep per stream: a slot up to half way from
// the oldest to the youngest is asked, as far as the sweep before suggests, then the one half way
// to the oldest, down to the oldest. So a device that is far behind costs one question, and one
// that has caught up one question for half of the list. A completed event also frees each other
// slot of its stream whose copy call had returned before this event's record call began. Threads
// enqueue out of order, so the order of the list alone would not be sound; each slot is stamped
// from its stream's clock between its copy and its record, and the stamps tell.
//
// A stream takes the slots first that came back from it: their memory and their events are still in
// the caches of the core that copies there.
//
// A ring that went round all of a thousand slots would write to memory that has left the caches. So
// a sweep is made before slots run out, too, each time that 256 KiB more are in use, or 256 slots,
// or four where the device was idle; what it frees is taken first.
//
// A sweep that frees few slots was not worth its questions. When the device is behind, the ring is
// small for how far; when it is not, more slots would share the questions, as long as they are
// small enough to stay in the caches. Either way the ring doubles within its limits, by sixteen
// slots at most.
//
// A free slot keeps the memory that it had last, so that copies of one size in a row neither search
// nor merge; whoever needs another size takes it back.
//
// Thread-safe. One short lock, never held while waiting, allocating pinned memory or copying.
class SlotRing {
 public:
  SlotRing(Device& device, const StagerOptions& options);

  // Makes memory and events for `initial_slots` slots.
  Expected<void> Prepare();

  // Asks the caches for the line that the lock lies in, to write it, and does not wait: another
  // thread's copies may have it, and whoever takes the lock next would wait for it then.
  void FetchLock() const noexcept {
#if defined(__x86_64__)
    asm volatile("prefetchw %0" : : "m"(mutex_));
#endif
  }

  // Takes a slot of `bytes` bytes (0: without memory) for a copy on `stream` (0: not known yet);
  // answers false when none is free and the ring may not grow. Grows within the limits. Never
  // waits. Errors: the device's; `kResourceExhausted` when nothing is in flight or held that could
  // become free.
  Expected<bool> TryTake(uint64_t bytes, StreamId stream, SlotRef* slot) {
    if (!LooksAtEach(bytes) && TryTakeKnownFree(bytes, stream, slot)) return true;
    return LookAndTake(bytes, stream, slot);
  }

  // The same from what is known to be free, without asking the device: the usual way. Has none
  // either when it is time to look for completions.
  [[gnu::always_inline]] bool TryTakeKnownFree(uint64_t bytes, StreamId stream, SlotRef* slot) {
    MutexLock lock(mutex_);
    if (in_use_ >= take_below_) return false;
    StreamList* const own = FindList(stream);
    if (own != nullptr && own->free != kNone) [[likely]] {
      const uint32_t index = own->free;
      if (slots_[index].run.blocks == BlocksOf(bytes)) [[likely]] {
        own->free = slots_[index].next;
        Hold(index, bytes, slot);
        return true;
      }
    }
    return TakeFree(bytes, stream, slot);
  }

  // For a caller that `TryTakeKnownFree` had none for: looks for completions, then grows.
  Expected<bool> LookAndTake(uint64_t bytes, StreamId stream, SlotRef* slot);

  // Waits for a slot, after `TryTake` had none. Errors: also `kUnavailable` after `wait_timeout`.
  Expected<SlotRef> WaitAndTake(uint64_t bytes);

  // Returns a held slot of which nothing was enqueued.
  void HandBack(const SlotRef& slot) noexcept;

  // Ends the holding of a slot whose copy call (or other work) on `stream` has returned, however it
  // ended: records its event there and puts it in flight. When the record fails, the slot is
  // quarantined and the error returned. `copy`, unless null, names the enqueued copy from then on,
  // either way; `bytes` are counted, also when the record fails.
  [[gnu::always_inline]] Expected<void> Publish(const SlotRef& slot, const Stream& stream,
                                                StreamId id, const SentBytes& bytes,
                                                CopyRef* copy) {
    FetchLock();  // the record takes longer than that
    const uint64_t stamp = clocks_[id % clocks_.size()].now.FetchAdd(1) + 1;
    Expected<void> recorded = device_.Record(*slots_[slot.index].event, stream);
    PutInFlight(slot.index, {id, stamp, recorded.has_value()}, bytes, copy);
    return recorded;
  }

  // Records a quarantined slot of `stream` there anew, so that its completion, and that of all its
  // like, can be learnt: for a ring that is full of them, where no later copy will do it. Answers
  // whether one was recorded.
  bool RecordQuarantined(const Stream& stream, StreamId id);

  // Makes `stream` wait for `copy` alone unless it is known complete; answers whether it had to.
  // Errors: `kUnavailable` when the copy's record failed and no later one stands in for it yet.
  Expected<bool> MakeStreamWait(const Stream& stream, const CopyRef& copy);

  // Whether `copy` was observed to be complete, without asking the device.
  bool KnownComplete(const CopyRef& copy) const noexcept;

  // Waits for every copy in flight, then hands idle memory to the device's cache. After an error of
  // the device it returns: what may still be read is leaked when the ring dies.
  void Drain() noexcept;

  // All of the statistics but the calls that took no slot.
  StagerStats Stats() const noexcept;

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};
  // So many more slots in use, at most, make a caller look for completions.
  static constexpr uint32_t kLookEvery = 256;
  // And after a sweep that freed some, whatever the sizes were.
  static constexpr uint32_t kLookAfterSweep = 64;
  // Events beyond `max_slots`, for slots whose memory is free but whose event is still looked at.
  static constexpr uint32_t kSpareEvents = 64;

  enum class State : uint8_t { kFree, kHeld, kInFlight, kQuarantined };

  // Threads that copy on streams of their own use slots of their own, which share no line.
  struct alignas(64) Slot {
    std::optional<Event> event;
    BlockRun run;                 // kept while free, unless the event is still looked at
    std::byte* memory = nullptr;  // where `run` lies
    uint64_t generation = 1;
    uint64_t stamp = 0;  // drawn after the copy call returned and before the record call began
    StreamId stream = 0;
    uint32_t pins = 0;
    uint32_t next = kNone;  // the next younger of the same stream; free, the one freed before
    State state = State::kFree;
  };

  // The slots in flight or quarantined on one stream, oldest first; those that came back from it
  // since there was nothing, the last one first; and what its copies count for.
  struct alignas(64) StreamList {
    uint32_t oldest = kNone;
    uint32_t youngest = kNone;
    uint32_t count = 0;
    uint32_t reach =
        StagerOptions::kMaxSlots;  // how far behind the oldest the next sweep asks first
    uint32_t free = kNone;
    CopyCounts counts{};
  };

  // Stamps are compared among copies of one stream only: streams may share a clock, and had better
  // not, because each copy changes it.
  struct alignas(64) Clock {
    Atomic<uint64_t> now{0};
  };

  // What the last sweep that freed anything says about the ring's size.
  enum class Swept : uint8_t {
    kEnough,     // it was worth its questions
    kFew,        // it freed few slots, although the device was not behind
    kFewBehind,  // it freed few, because the device was behind
  };

  // What the ring lacks to serve a request, decided under the lock, allocated outside it.
  struct Growth {
    uint32_t events = 0;
    uint64_t slab_bytes = 0;
    std::vector<PinnedBuffer> retired;  // idle slabs that make room; they die outside the lock
  };

  // Slots pinned by a waiter, whose events it waits for.
  struct WaitSet {
    std::array<const Event*, StagerOptions::kMaxSlots> events;
    std::array<uint32_t, StagerOptions::kMaxSlots> slots;
    size_t count = 0;

    std::span<const Event* const> view() const noexcept { return {events.data(), count}; }
    std::span<const uint32_t> pinned() const noexcept { return {slots.data(), count}; }
  };

  // Events that one call of the device looks at, the youngest first.
  struct Questions {
    std::array<const Event*, 16> events;
    std::array<uint32_t, 16> slots;
    std::array<uint32_t, 16> behind;  // how many in flight are older
    size_t count = 0;
    bool idle_if_first = false;  // the first is the youngest in flight, before the usual ones

    void Add(uint32_t older, uint32_t slot, const Event& event) noexcept {
      behind[count] = older;
      slots[count] = slot;
      events[count++] = &event;
    }
    std::span<const Event* const> view() const noexcept { return {events.data(), count}; }
  };

  // How a slot's event was recorded.
  struct Recorded {
    StreamId stream = 0;
    uint64_t stamp = 0;
    bool succeeded = false;
  };
  // Or into quarantine. Inline, because what is known of a slot by now is in registers.
  [[gnu::always_inline]] void PutInFlight(uint32_t index, const Recorded& recorded,
                                          const SentBytes& bytes, CopyRef* copy) {
    MutexLock lock(mutex_);
    Slot& slot = slots_[index];
    slot.stamp = recorded.stamp;
    slot.state = recorded.succeeded ? State::kInFlight : State::kQuarantined;
    slot.stream = recorded.stream;
    slot.next = kNone;
    StreamList& list = ListFor(recorded.stream);
    Append(list, index);
    list.counts.Add(bytes);
    if (!recorded.succeeded) [[unlikely]]
      CountQuarantined();
    if (copy != nullptr) *copy = CopyRef{index, slot.generation, recorded.stream};
    NotifyWaiters();
  }
  void Append(StreamList& list, uint32_t index) H2D_REQUIRES(mutex_) {
    (list.youngest == kNone ? list.oldest : slots_[list.youngest].next) = index;
    list.youngest = index;
    ++list.count;
  }
  void CountQuarantined() H2D_REQUIRES(mutex_);

  // `refused` holds what a growth was refused with, and keeps this call from growing.
  Expected<bool> LookAndTake(uint64_t bytes, StreamId stream, SlotRef* slot,
                             std::optional<Error>& refused);
  // The slot that the stream freed last, or else any did, with the memory that it had if that is of
  // the size.
  bool TakeFree(uint64_t bytes, StreamId stream, SlotRef* slot) H2D_REQUIRES(mutex_);
  void Hold(uint32_t index, uint64_t bytes, SlotRef* slot) H2D_REQUIRES(mutex_) {
    Slot& held = slots_[index];
    held.state = State::kHeld;
    ++in_use_;
    *slot = {index, {held.memory, bytes}};
  }
  static uint32_t LooksEvery(uint64_t bytes);
  uint32_t LooksNext(uint64_t bytes) const H2D_REQUIRES(mutex_);
  static bool LooksAtEach(uint64_t bytes) { return LooksEvery(bytes) == 1; }
  // A wide ring is looked at when none is left, too: who finds none without having looked asks
  // under the lock, where all wait. In a small one that asks in vain, it would ask twice.
  bool IsWide() const { return options_.max_slots > kLookAfterSweep; }
  void LookAt(uint32_t in_use) H2D_REQUIRES(mutex_) {
    take_below_ = std::min(in_use, uint32_t{options_.max_slots});
    look_at_ = IsWide() ? take_below_ : in_use;
  }
  std::optional<StreamId> WorthALook(uint64_t bytes, StreamId stream) H2D_REQUIRES(mutex_);
  void LookAhead(uint64_t bytes, StreamId stream);
  Expected<bool> TakeFreeOrSwept(uint64_t bytes, StreamId stream, SlotRef* slot)
      H2D_REQUIRES(mutex_);
  void TakeOverFree() H2D_REQUIRES(mutex_);
  bool AnyFree() const H2D_REQUIRES(mutex_);
  uint32_t MissingEvents() const H2D_REQUIRES(mutex_);
  bool IsSmallFor(uint64_t bytes) const H2D_REQUIRES(mutex_);
  std::optional<Growth> PlanGrowthAhead(uint64_t bytes) H2D_REQUIRES(mutex_);
  bool Refit(Slot& slot, uint64_t bytes) H2D_REQUIRES(mutex_);
  void GiveBackMemory(Slot& slot) H2D_REQUIRES(mutex_);
  void GiveBackKeptMemory() H2D_REQUIRES(mutex_);
  std::optional<Growth> PlanGrowth(uint64_t bytes) H2D_REQUIRES(mutex_);
  bool MakeRoomForSlab(uint64_t bytes, Growth& growth) H2D_REQUIRES(mutex_);
  Expected<void> Grow(Growth growth);
  void CommitEvent(Event event) H2D_REQUIRES(mutex_);
  void CommitSlab(PinnedBuffer memory) H2D_REQUIRES(mutex_);

  Expected<SlotRef> WaitForSlot(uint64_t bytes);
  Questions QuestionsFor(const StreamList& list, bool whether_idle) const H2D_REQUIRES(mutex_);
  void RememberReach(StreamId stream, const Questions& questions, std::optional<size_t> complete)
      H2D_REQUIRES(mutex_);
  Expected<bool> Sweep(StreamId stream) H2D_REQUIRES(mutex_);
  std::span<const StreamId> StreamsFrom(std::span<StreamId> room) const H2D_REQUIRES(mutex_);
  uint32_t Complete(uint32_t index) H2D_REQUIRES(mutex_);  // answers how many it freed
  void MoveFree(StreamList& list) H2D_REQUIRES(mutex_);
  void DropList(StreamList& list) H2D_REQUIRES(mutex_);
  std::optional<uint32_t> TakeQuarantined(StreamId stream) H2D_REQUIRES(mutex_);
  void Unlink(StreamList& list, uint32_t index, uint32_t previous) H2D_REQUIRES(mutex_);
  // The memory is free at once; the event when nobody looks at it any more. The caller notifies.
  // With `list`, that of its stream, it is the first that the stream takes again.
  void Free(uint32_t index, StreamList* list) H2D_REQUIRES(mutex_) {
    Slot& slot = slots_[index];
    slot.state = State::kFree;
    ++slot.generation;
    --in_use_;
    if (slot.pins > 0 || !keeps_memory_) [[unlikely]] {
      GiveBackMemory(slot);
      if (slot.pins > 0) {
        ++pinned_free_;
        return;
      }
    }
    if (list != nullptr) {
      slot.next = std::exchange(list->free, index);
    } else {
      free_.push_back(index);
    }
  }
  StreamList& ListFor(StreamId stream) H2D_REQUIRES(mutex_) {
    if (StreamList* list = FindList(stream)) [[likely]]
      return *list;
    return AddList(stream);
  }
  StreamList& AddList(StreamId stream) H2D_REQUIRES(mutex_);
  std::span<StreamList> Lists() H2D_REQUIRES(mutex_) { return {streams_.data(), stream_count_}; }
  std::span<const StreamList> Lists() const H2D_REQUIRES(mutex_) {
    return {streams_.data(), stream_count_};
  }
  StreamList* FindList(StreamId stream) H2D_REQUIRES(mutex_) {
    for (uint32_t i = 0; i < stream_count_; ++i) {
      if (stream_ids_[i] == stream) return &streams_[i];
    }
    return nullptr;
  }
  uint32_t RecordedAfter(const Slot& slot) H2D_REQUIRES(mutex_);
  void Unpin(uint32_t index) H2D_REQUIRES(mutex_);
  void PinAllInFlight(WaitSet& set) H2D_REQUIRES(mutex_);
  bool AnythingToWaitFor() const H2D_REQUIRES(mutex_);
  Unexpected NothingCanBecomeFree(uint64_t bytes) const H2D_REQUIRES(mutex_);
  // Ends a look at the events of slots that were pinned for it.
  void EndLook(std::span<const uint32_t> pinned, std::optional<size_t> complete)
      H2D_REQUIRES(mutex_);
  // Before slots are freed, because until then their number only grows.
  void CountMostInUse() H2D_REQUIRES(mutex_) {
    stats_.slots_in_use_most = std::max(stats_.slots_in_use_most, in_use_);
  }
  void NotifyWaiters() H2D_REQUIRES(mutex_) {
    if (waiters_ > 0) [[unlikely]]
      wakeup_.Notify();
  }

  Device& device_;
  const StagerOptions options_;

  // Orders copy calls against record calls. Not under the lock: it is drawn between the two.
  std::array<Clock, 16> clocks_;
  Wakeup wakeup_;

  // What each copy touches begins a line, what few do follows.
  alignas(64) mutable Mutex mutex_;
  uint32_t in_use_ H2D_GUARDED_BY(mutex_) = 0;
  uint32_t look_at_ H2D_GUARDED_BY(mutex_) = 0;     // that many in use
  uint32_t take_below_ H2D_GUARDED_BY(mutex_) = 0;  // the same, or the limit
  uint32_t waiters_ H2D_GUARDED_BY(mutex_) = 0;
  bool keeps_memory_ H2D_GUARDED_BY(mutex_) = true;  // of free slots
  // Streams with something in flight, and beside them their lists, so that who looks for one
  // touches no other's. Both sized once.
  uint32_t stream_count_ H2D_GUARDED_BY(mutex_) = 0;
  std::vector<StreamId> stream_ids_ H2D_GUARDED_BY(mutex_);
  std::vector<StreamList> streams_ H2D_GUARDED_BY(mutex_);
  // Free slots of no stream in particular; the last one freed is taken first.
  std::vector<uint32_t> free_ H2D_GUARDED_BY(mutex_);

  // Sized once; the slots whose events were made come first. The lock guards them, but for the
  // event of a held slot, which is its holder's.
  std::vector<Slot> slots_;

  alignas(64) SlabArena arena_ H2D_GUARDED_BY(mutex_);
  uint64_t reserved_bytes_ H2D_GUARDED_BY(mutex_) = 0;  // of slabs being allocated
  uint32_t events_made_ H2D_GUARDED_BY(mutex_) = 0;
  uint32_t quarantined_ H2D_GUARDED_BY(mutex_) = 0;
  uint32_t pinned_free_ H2D_GUARDED_BY(mutex_) = 0;  // free slots whose event is still looked at
  Swept swept_ H2D_GUARDED_BY(mutex_) = Swept::kEnough;
  bool grows_ahead_ H2D_GUARDED_BY(mutex_) = true;     // until the device refuses a growth
  bool idle_ H2D_GUARDED_BY(mutex_) = false;           // whether the last look found all complete
  uint32_t looks_at_busy_ H2D_GUARDED_BY(mutex_) = 0;  // modulo 2^32
  StagerStats stats_ H2D_GUARDED_BY(mutex_);           // without what the lists count
};

// Holds a slot until it is released to somebody, or hands it back.
class HeldSlot {
 public:
  explicit HeldSlot(SlotRing& ring) noexcept : ring_(ring) {}
  ~HeldSlot() { HandBack(); }
  HeldSlot(const HeldSlot&) = delete;
  HeldSlot& operator=(const HeldSlot&) = delete;

  // Holds `slot` instead of what it held before.
  void Hold(const SlotRef& slot) noexcept {
    HandBack();
    slot_ = slot;
  }
  SlotRef Release() noexcept { return *std::exchange(slot_, std::nullopt); }

  explicit operator bool() const noexcept { return slot_.has_value(); }
  const SlotRef& slot() const noexcept { return *slot_; }

  void HandBack() noexcept {
    if (slot_) ring_.HandBack(*slot_);
    slot_.reset();
  }

 private:
  SlotRing& ring_;
  std::optional<SlotRef> slot_;
};

}  // namespace h2d::internal

#endif  // H2D_STAGER_INTERNAL_SLOT_RING_H_
