// How the ring learns what has completed, and how it waits.
#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "h2d/stager/internal/slot_ring.h"
#include "h2d/stager/internal/state_mark.h"

namespace h2d::internal {
namespace {

// A question that is answered yes takes nearly as long as a copy (1.3 and 1.4 us on an H200, where
// the device is busy; one that is answered no 0.35 us): shared by so many copies it is hardly felt.
constexpr uint32_t kWorthASweep = 32;

// What a ring writes to between two looks for completions should stay in a core's caches; fewer
// slots than so many would not be worth the question.
constexpr uint64_t kBytesBetweenLooks = uint64_t{256} << 10;
constexpr uint32_t kFewestBetweenLooks = 8;
// From this size on it matters to a copy whether its slot is in the core's caches: of so many, in
// which those of small sources fit.
constexpr uint64_t kWarmBytes = uint64_t{16} << 10;
constexpr uint32_t kWarmSlots = 4;
// Where the device was busy, it is asked whether it is idle at each of so many looks.
constexpr uint32_t kLooksUntilAsked = 4;
// The copy of a slot from this size on takes ten times as long as a question, and one such slot
// fills a core's caches.
constexpr uint64_t kLargeSlotBytes = uint64_t{1} << 20;

}  // namespace

SlotRing::StreamList& SlotRing::AddList(StreamId stream) {
  stream_ids_[stream_count_] = stream;
  return streams_[stream_count_++] = StreamList();
}

// The streams with something in flight, by identity: lists come and go while they are swept.
std::span<const StreamId> SlotRing::StreamsFrom(std::span<StreamId> room) const {
  const size_t count = std::min(size_t{stream_count_}, room.size());
  std::copy_n(stream_ids_.begin(), count, room.begin());
  return room.first(count);
}

// What one call of the device asks of a stream: the youngest slot, if `whether_idle`; then the one
// `reach` behind the oldest (at most in the middle of the list), then half way to the oldest, down
// to it.
SlotRing::Questions SlotRing::QuestionsFor(const StreamList& list, bool whether_idle) const {
  Questions questions;
  std::array<uint32_t, StagerOptions::kMaxSlots> recorded;
  const size_t most = std::min(list.reach, list.count / 2) + size_t{1};
  size_t count = 0;
  for (uint32_t i = list.oldest; i != kNone && count < most; i = slots_[i].next) {
    if (slots_[i].state == State::kInFlight) recorded[count++] = i;
  }
  if (count == 0) return questions;
  const uint32_t youngest = list.youngest;
  if (whether_idle && youngest != recorded[count - 1] &&
      slots_[youngest].state == State::kInFlight) {
    questions.Add(list.count - 1, youngest, *slots_[youngest].event);
    questions.idle_if_first = true;
  }
  for (uint32_t next = static_cast<uint32_t>(count) - 1;; next /= 2) {
    questions.Add(next, recorded[next], *slots_[recorded[next]].event);
    if (next == 0) return questions;
  }
}

// How far the next sweep of the stream asks first. Complete as far as was asked: further.
void SlotRing::RememberReach(StreamId stream, const Questions& questions,
                             std::optional<size_t> complete) {
  StreamList* const list = FindList(stream);
  if (list == nullptr) return;
  const size_t first = questions.idle_if_first ? 1 : 0;
  list->reach = !complete            ? 0
                : *complete <= first ? 2 * questions.behind[first] + 1
                                     : questions.behind[*complete];
}

// Answers whether anything was freed: nothing means that the oldest is pending.
Expected<bool> SlotRing::Sweep(StreamId stream) {
  const StreamList* const list = FindList(stream);
  if (list == nullptr) return false;
  const Questions questions = QuestionsFor(*list, /*whether_idle=*/false);
  if (questions.count == 0) return false;
  const auto complete = device_.WaitAny(questions.view(), WaitBounds{});
  if (!complete) return Unexpected(complete.error());
  RememberReach(stream, questions, *complete);
  if (!*complete) return false;
  const uint32_t freed = Complete(questions.slots[**complete]);
  if (freed < kWorthASweep) swept_ = **complete == 0 ? Swept::kFew : Swept::kFewBehind;
  return true;
}

// After how many more slots in use a caller looks again.
uint32_t SlotRing::LooksEvery(uint64_t bytes) {
  if (bytes >= kLargeSlotBytes) return 1;
  const uint64_t slots = kBytesBetweenLooks / std::max<uint64_t>(1, bytes);
  return static_cast<uint32_t>(std::clamp<uint64_t>(slots, kFewestBetweenLooks, kLookEvery));
}

// The same after a look. A device that has nothing left to do answers in a seventh of the time, and
// slots that few others have come between are still in the core's caches. And the fewer slots are
// left, the sooner: who finds none asks under the lock, and every other thread waits.
uint32_t SlotRing::LooksNext(uint64_t bytes) const {
  const uint32_t usual = LooksEvery(bytes);
  if (idle_ && bytes >= kWarmBytes) return std::min(usual, kWarmSlots);
  const uint32_t left = options_.max_slots - std::min(in_use_, options_.max_slots);
  return std::min(usual, std::max(left / 2, kWorthASweep));
}

// The stream to look at: that of the caller, whose core has its slots in its caches, unless another
// has a third more in flight: a thread that copies on two in turns might never come to look at one
// of them. Nothing when there are too few.
std::optional<StreamId> SlotRing::WorthALook(uint64_t bytes, StreamId stream) {
  const uint32_t fewest = std::min(LooksNext(bytes), kFewestBetweenLooks);
  const std::span<StreamList> lists = Lists();
  const auto longest = std::ranges::max_element(lists, {}, &StreamList::count);
  if (longest == lists.end() || longest->count < fewest) return std::nullopt;
  const StreamList* const own = FindList(stream);
  if (own != nullptr && own->count >= std::max(fewest, longest->count / 4 * 3)) return stream;
  return stream_ids_[static_cast<size_t>(longest - lists.begin())];
}

// Looks once for completions before the ring runs out of slots. Nobody needs the answer yet: so the
// question, which takes the driver longer than any other section lasts, is asked outside the lock,
// and an error is left to whoever does.
void SlotRing::LookAhead(uint64_t bytes, StreamId own) {
  Questions questions;
  StreamId stream = 0;
  {
    MutexLock lock(mutex_);
    const bool asks_anyway = in_use_ >= options_.max_slots && !IsWide();
    if (!LooksAtEach(bytes) && (in_use_ < look_at_ || asks_anyway)) return;
    LookAt(in_use_ + LooksNext(bytes));
    const std::optional<StreamId> worth = WorthALook(bytes, own);
    if (!worth) return;
    stream = *worth;
    const bool ask = idle_ || ++looks_at_busy_ % kLooksUntilAsked == 0;
    questions = QuestionsFor(*FindList(stream), ask && bytes >= kWarmBytes);
    for (size_t i = 0; i < questions.count; ++i) ++slots_[questions.slots[i]].pins;
  }
  if (questions.count == 0) return;
  const auto complete = device_.WaitAny(questions.view(), WaitBounds{});
  MutexLock lock(mutex_);
  if (complete) RememberReach(stream, questions, *complete);
  idle_ = complete && *complete && **complete == 0 && questions.idle_if_first;
  EndLook({questions.slots.data(), questions.count}, complete ? *complete : std::nullopt);
  LookAt(in_use_ + LooksNext(bytes));
}

void SlotRing::Unlink(StreamList& list, uint32_t index, uint32_t previous) {
  (previous == kNone ? list.oldest : slots_[previous].next) = slots_[index].next;
  if (list.youngest == index) list.youngest = previous;
  --list.count;
}

// Frees the slot whose event was seen complete and, with it, the slots of its stream whose copy
// call returned before this event's record call began: the event stands for those copies too.
// Behind the slot itself few are, and they are freed by a later sweep, unless they are quarantined:
// to those a completion may be the last chance.
uint32_t SlotRing::Complete(uint32_t index) {
  const uint64_t stamp = slots_[index].stamp;
  StreamList& list = ListFor(slots_[index].stream);
  CountMostInUse();
  uint32_t kept = kNone;  // the youngest so far
  uint32_t freed = 0;
  uint32_t next = list.oldest;
  for (bool passed = false; next != kNone && !(passed && quarantined_ == 0);) {
    const uint32_t i = next;
    next = slots_[i].next;
    passed = passed || i == index;
    if (i != index && slots_[i].stamp >= stamp) {
      (kept == kNone ? list.oldest : slots_[kept].next) = i;
      kept = i;
      continue;
    }
    if (slots_[i].state == State::kQuarantined) [[unlikely]] {
      Reached(Mark::kQuarantineEnded);
      --quarantined_;
    }
    Free(i, &list);
    ++freed;
  }
  (kept == kNone ? list.oldest : slots_[kept].next) = next;
  if (next == kNone) list.youngest = kept;
  list.count -= freed;
  LookAt(std::min(look_at_, in_use_ + kLookAfterSweep));
  if (freed > 1) Reached(Mark::kCompletedInBatch);
  if (list.count == 0) DropList(list);
  NotifyWaiters();
  return freed;
}

// Which stream comes where in the list is of no meaning.
void SlotRing::DropList(StreamList& list) {
  MoveFree(list);
  list.counts.AddTo(stats_);
  const uint32_t last = --stream_count_;
  stream_ids_[static_cast<size_t>(&list - streams_.data())] = stream_ids_[last];
  list = streams_[last];
}

// Takes a quarantined slot of the stream that no record in flight stands for out of its list, to be
// recorded once more.
std::optional<uint32_t> SlotRing::TakeQuarantined(StreamId stream) {
  StreamList* const list = FindList(stream);
  if (list == nullptr) return std::nullopt;
  uint32_t previous = kNone;
  for (uint32_t i = list->oldest; i != kNone; previous = i, i = slots_[i].next) {
    if (slots_[i].state != State::kQuarantined || RecordedAfter(slots_[i]) != kNone) continue;
    Unlink(*list, i, previous);
    if (list->count == 0) DropList(*list);
    slots_[i].state = State::kHeld;
    --quarantined_;
    return i;
  }
  return std::nullopt;
}

bool SlotRing::RecordQuarantined(const Stream& stream, StreamId id) {
  std::optional<uint32_t> index;
  {
    MutexLock lock(mutex_);
    index = TakeQuarantined(id);
  }
  if (!index) return false;
  Reached(Mark::kQuarantineRecorded);
  return Publish({.index = *index, .bytes = {}}, stream, id, SentBytes{}, nullptr).has_value();
}

void SlotRing::Unpin(uint32_t index) {
  Slot& slot = slots_[index];
  if (--slot.pins > 0 || slot.state != State::kFree) return;
  --pinned_free_;
  free_.push_back(index);
  NotifyWaiters();
}

// A slot in flight on the same stream whose record stands for `slot`'s copy too, or `kNone`.
uint32_t SlotRing::RecordedAfter(const Slot& slot) {
  const StreamList* const list = FindList(slot.stream);
  if (list == nullptr) return kNone;
  for (uint32_t i = list->oldest; i != kNone; i = slots_[i].next) {
    if (slots_[i].state == State::kInFlight && slots_[i].stamp > slot.stamp) return i;
  }
  return kNone;
}

void SlotRing::PinAllInFlight(WaitSet& set) {
  set.count = 0;
  for (const StreamList& list : Lists()) {
    for (uint32_t i = list.oldest; i != kNone; i = slots_[i].next) {
      if (slots_[i].state != State::kInFlight) continue;
      ++slots_[i].pins;
      set.events[set.count] = &*slots_[i].event;
      set.slots[set.count++] = i;
    }
  }
}

// A pinned slot is not recycled: in flight, it still is the copy that was asked about. Unpinned
// before they are freed, slots keep their memory.
void SlotRing::EndLook(std::span<const uint32_t> pinned, std::optional<size_t> complete) {
  const uint32_t seen = complete ? pinned[*complete] : kNone;
  const bool frees = seen != kNone && slots_[seen].state == State::kInFlight;
  for (const uint32_t slot : pinned) Unpin(slot);
  if (frees) Complete(seen);
}

Expected<SlotRef> SlotRing::WaitAndTake(uint64_t bytes) {
  {
    MutexLock lock(mutex_);
    ++waiters_;
    ++stats_.slot_waits;
  }
  Reached(Mark::kWaitedForSlot);
  Expected<SlotRef> slot = WaitForSlot(bytes);
  MutexLock lock(mutex_);
  --waiters_;
  return slot;
}

Expected<SlotRef> SlotRing::WaitForSlot(uint64_t bytes) {
  const std::chrono::nanoseconds start = device_.Now();
  // A refused growth is tried again only after a completion: the driver is no place to poll.
  std::optional<Error> refused;
  for (;;) {
    // Read before trying: whatever is handed back after the try moves the epoch on.
    const uint64_t epoch = wakeup_.Epoch();
    SlotRef slot;
    auto taken = LookAndTake(bytes, /*stream=*/0, &slot, refused);
    if (!taken) return ErrorOf(taken);
    if (*taken) return slot;
    WaitSet set;
    {
      MutexLock lock(mutex_);
      PinAllInFlight(set);
    }
    // In durations waited: a point in time at which the longest timeouts end does not exist.
    const std::chrono::nanoseconds left = options_.wait_timeout - (device_.Now() - start);
    auto complete = device_.WaitAny(set.view(), {left, &wakeup_, epoch});
    {
      MutexLock lock(mutex_);
      EndLook(set.pinned(), complete ? *complete : std::nullopt);
    }
    if (!complete) return ErrorOf(complete);
    if (*complete) refused.reset();
    if (!*complete && device_.Now() - start >= options_.wait_timeout) {
      return Unavailable("No slot of " + std::to_string(bytes) +
                         " bytes became free within wait_timeout, " +
                         std::to_string(options_.wait_timeout.count()) + " ns.");
    }
  }
}

void SlotRing::Drain() noexcept {
  {
    MutexLock lock(mutex_);
    keeps_memory_ = false;
    GiveBackKeptMemory();
  }
  for (;;) {
    WaitSet set;
    {
      MutexLock lock(mutex_);
      std::array<StreamId, StagerOptions::kMaxSlots> room;
      for (const StreamId stream : StreamsFrom(room)) {
        if (!Sweep(stream)) return;
      }
      PinAllInFlight(set);
    }
    if (set.count == 0) break;
    // No deadline: a copy that never completes must not lose its source. A simulator that sees
    // nothing left to wait for answers with an error.
    const auto complete = device_.WaitAny(set.view(), {.timeout = std::chrono::nanoseconds::max()});
    MutexLock lock(mutex_);
    EndLook(set.pinned(), complete ? *complete : std::nullopt);
    if (!complete) return;
  }
  for (;;) {
    std::optional<PinnedBuffer> idle;  // dies, into the device's cache, outside the lock
    MutexLock lock(mutex_);
    idle = arena_.RemoveIdleSlab();
    if (!idle) return;
  }
}

}  // namespace h2d::internal
