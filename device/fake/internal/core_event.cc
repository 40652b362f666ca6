// Events: records, queries, and waits of the host and of streams.
#include <algorithm>
#include <string>
#include <utility>

#include "h2d/device/fake/internal/core.h"
#include "h2d/device/fake/internal/cuda_errors.h"

namespace h2d::fake_internal {
namespace {

// So many pending answers in a row while nothing can run are a loop that never ends.
constexpr uint64_t kMaxFruitlessQueries = 100'000;

}  // namespace

Expected<Event> Core::CreateEvent(std::shared_ptr<Core> self) {
  Lock lock;
  const Expected<Caller> caller = Enter(lock, OpKind::kCreateEvent, Time(500));
  if (!caller) return Unexpected(caller.error());
  const uint64_t raw = next_event_++;
  events_.emplace(raw, EventRecord{});
  ++counters_.events_created;
  OperationInfo info = NewCall(*caller, OpKind::kCreateEvent);
  info.object = static_cast<uint32_t>(raw);
  Note(TracePhase::kCall, info);
  lock.unlock();
  return Event::ForBackend(std::move(self), raw);
}

void Core::DestroyEvent(uint64_t raw) noexcept {
  Lock lock;
  const Expected<Caller> caller = Enter(lock, OpKind::kDestroyEvent, Time(100));
  if (!caller) return;
  events_.erase(raw);  // who waits keeps what he waits for
  ++counters_.events_destroyed;
  OperationInfo info = NewCall(*caller, OpKind::kDestroyEvent);
  info.object = static_cast<uint32_t>(raw);
  Note(TracePhase::kCall, info);
}

Expected<EventRecord*> Core::FindEvent(const Event& event, const Caller& caller, OpKind kind) {
  const auto found = events_.find(event.raw());
  if (found != events_.end()) return &found->second;
  OperationInfo info = NewCall(caller, kind);
  info.object = static_cast<uint32_t>(event.raw());
  detector_.Report(HazardKind::kUseOfDestroyedHandle, nullptr, &info,
                   "event " + std::to_string(event.raw()) + " was destroyed");
  return MakeError(ErrorCode::kInvalidArgument,
                   "The event " + std::to_string(event.raw()) + " was destroyed.",
                   cuda_errors::kInvalidResourceHandle);
}

bool Core::IsCaptured(const Event& event) const {
  const auto found = events_.find(event.raw());
  return found != events_.end() && found->second.captured_by != 0;
}

Expected<void> Core::Record(Event& event, const Stream& stream) {
  if (Expected<void> ok = CheckRecord(identity_, event, stream); !ok) return ok;
  Lock lock;
  const Expected<Caller> caller = Enter(lock, OpKind::kRecord, options_.latencies.host_record_call);
  if (!caller) return Unexpected(caller.error());
  const Expected<SimStream*> found = Resolve(stream, *caller, OpKind::kRecord);
  if (!found) return Unexpected(found.error());
  const Expected<EventRecord*> record = FindEvent(event, *caller, OpKind::kRecord);
  if (!record) return Unexpected(record.error());
  SimStream& target = **found;
  if (Expected<void> ok = ImplicitCapture(target, true); !ok) return ok;
  if (target.capture != nullptr) {
    if (target.capture->invalidated) return InvalidatedCapture();
    **record =
        EventRecord{nullptr, target.capture->id, target.capture->BranchOf(target).frontier, {}};
    return {};
  }
  OrderWithLegacy(*caller, target);
  auto marker = std::make_shared<Marker>();
  marker->stream = &target;
  marker->record = NewOperation(*caller, OpKind::kRecord, target.lane);
  marker->record.object = static_cast<uint32_t>(event.raw());
  const Epoch epoch = detector_.BeginIssue(caller->lane, target.lane);
  marker->recorded = detector_.Moment(caller->lane);
  detector_.EndIssue(caller->lane, epoch);
  if (detector_.enabled()) marker->clock = detector_.clock(target.lane);
  ReportUnorderedUses(*caller, **record, marker->record);
  **record = EventRecord{marker, 0, {}, {}};
  ++counters_.records;
  Note(TracePhase::kCall, marker->record);
  engine_.Record(target, marker, marker->record);
  return {};
}

bool Core::RecordIsOrdered(const Caller& caller, const Marker& marker, const OperationInfo& info) {
  if (!detector_.enabled()) return true;
  if (detector_.clock(caller.lane).Contains(marker.recorded)) return true;
  detector_.Report(HazardKind::kUnorderedRecord, &marker.record, &info,
                   "nothing orders the record by " + names_.lanes[marker.recorded.lane] +
                       " before this use of the event by " + names_.lanes[caller.lane] +
                       ": it may as well see the event as it was before");
  return false;
}

// Without tasks all calls are the host's, in their order.
void Core::NoteUse(const Caller& caller, EventRecord& event, const OperationInfo& info) {
  if (!detector_.enabled() || task_lanes_.empty()) return;
  const auto same_lane = [&](const EventUse& use) { return use.moment.lane == caller.lane; };
  const auto found = std::find_if(event.uses.begin(), event.uses.end(), same_lane);
  EventUse& use = found == event.uses.end() ? event.uses.emplace_back() : *found;
  use = {detector_.Moment(caller.lane), info};
}

// A use that nothing orders before a later record may as well see that one: the same fault as a use
// that came after a record without an order, seen in the other schedule.
void Core::ReportUnorderedUses(const Caller& caller, const EventRecord& event,
                               const OperationInfo& record) {
  for (const EventUse& use : event.uses) {
    if (detector_.clock(caller.lane).Contains(use.moment)) continue;
    detector_.Report(HazardKind::kUnorderedRecord, &use.operation, &record,
                     "nothing orders the use of the event by " + names_.lanes[use.moment.lane] +
                         " before this record by " + names_.lanes[caller.lane] +
                         ": it may as well see the event as it is after");
  }
}

Expected<bool> Core::Look(const Caller& caller, const Event& event, const OperationInfo& info,
                          bool may_be_late) {
  ++counters_.queries;
  const Expected<EventRecord*> found = FindEvent(event, caller, OpKind::kQuery);
  if (!found) return Unexpected(found.error());
  if ((*found)->captured_by != 0) return CapturedEvent(**found);
  NoteUse(caller, **found, info);
  const MarkerRef marker = (*found)->marker;
  if (marker == nullptr) return true;
  const bool ordered = RecordIsOrdered(caller, *marker, info);
  if (!marker->complete) return false;
  if (may_be_late && Choose(caller, ChoiceSite::kSeenLate, 2) != 0) return false;
  if (ordered) detector_.Acquire(caller.lane, marker->clock, info);
  return true;
}

Expected<EventState> Core::Query(const Event& event, bool raw) {
  if (Expected<void> ok = CheckQuery(identity_, event); !ok) return ErrorOf(ok);
  Lock lock;
  const Expected<Caller> caller = Enter(lock, OpKind::kQuery, options_.latencies.host_query_call);
  if (!caller) return Unexpected(caller.error());
  if (raw && !IsCaptured(event)) {  // that error comes first, as measured
    Expected<void> ok = ForbiddenByCaptures(*caller, OpKind::kQuery);
    if (!ok) return ErrorOf(ok);
  }
  OperationInfo info = NewCall(*caller, OpKind::kQuery);
  info.object = static_cast<uint32_t>(event.raw());
  const Expected<bool> done = Look(*caller, event, info, true);
  if (!done) return Unexpected(done.error());
  Note(*done ? TracePhase::kDone : TracePhase::kPending, info);
  if (*done) {
    fruitless_queries_ = 0;
    return EventState::kComplete;
  }
  const bool alone = !options_.os_threads && caller->scheduler == nullptr && !engine_.running();
  if (alone && ++fruitless_queries_ > kMaxFruitlessQueries && !engine_.CanStep(kForever)) {
    return Deadlock(info);
  }
  return EventState::kPending;
}

Expected<std::optional<size_t>> Core::WaitAny(std::span<const Event* const> events,
                                              const WaitBounds& bounds) {
  if (Expected<void> ok = CheckWaitAny(identity_, events); !ok) return ErrorOf(ok);
  Lock lock;
  const Expected<Caller> caller = Enter(lock, OpKind::kHostWait, Time(50));
  if (!caller) return Unexpected(caller.error());
  const OperationInfo info = NewCall(*caller, OpKind::kHostWait);
  const bool waits = bounds.timeout > Time(0);
  for (size_t i = 0; i < events.size(); ++i) {
    engine_.AdvanceTo(engine_.now() + options_.latencies.host_query_call);
    const Expected<bool> done = Look(*caller, *events[i], info, true);
    if (!done) return Unexpected(done.error());
    if (*done) {
      Note(TracePhase::kDone, info);
      return std::optional<size_t>(i);
    }
  }
  Note(TracePhase::kPending, info);
  if (!waits) return std::optional<size_t>();
  std::vector<MarkerRef> markers;  // the events' present records: a re-record does not end the wait
  for (const Event* event : events) markers.push_back(events_[event->raw()].marker);
  const Time deadline =
      bounds.timeout > kForever - engine_.now() ? kForever : engine_.now() + bounds.timeout;
  const auto any = [&] {
    for (const MarkerRef& marker : markers) {
      if (marker->complete) return true;
    }
    return false;
  };
  const WaitEnd end = WaitOnHost(lock, *caller, any, {deadline, bounds.wakeup, bounds.seen}, info);
  if (poison_) return Unexpected(*poison_);
  if (end == WaitEnd::kDeadlock) return Deadlock(info);
  Note(TracePhase::kDone, info);
  if (end == WaitEnd::kReady) return AnswerOf(*caller, markers, info);
  lock.unlock();
  if (end == WaitEnd::kWoken) static_cast<void>(bounds.wakeup->Epoch());  // acquires
  return std::optional<size_t>();
}

std::optional<size_t> Core::AnswerOf(const Caller& caller, std::span<const MarkerRef> markers,
                                     const OperationInfo& info) {
  std::vector<size_t> complete;
  for (size_t i = 0; i < markers.size(); ++i) {
    if (markers[i]->complete) complete.push_back(i);
  }
  const size_t answer =
      complete[Choose(caller, ChoiceSite::kWaitAnswer, static_cast<uint32_t>(complete.size()))];
  const Marker& marker = *markers[answer];
  // The first look has reported an unordered record already.
  if (detector_.enabled() && detector_.clock(caller.lane).Contains(marker.recorded)) {
    detector_.Acquire(caller.lane, marker.clock, info);
  }
  return answer;
}

Expected<void> Core::WaitEvent(const Stream& stream, const Event& event) {
  if (Expected<void> ok = CheckWaitEvent(identity_, stream, event); !ok) return ok;
  Lock lock;
  const Expected<Caller> caller = Enter(lock, OpKind::kStreamWait, Time(180));
  if (!caller) return Unexpected(caller.error());
  const Expected<SimStream*> found = Resolve(stream, *caller, OpKind::kStreamWait);
  if (!found) return Unexpected(found.error());
  const Expected<EventRecord*> record = FindEvent(event, *caller, OpKind::kStreamWait);
  if (!record) return Unexpected(record.error());
  SimStream& target = **found;
  if (Expected<void> ok = ImplicitCapture(target, true); !ok) return ok;
  bool captured = false;
  Expected<void> in_capture = WaitInCapture(target, **record, captured);
  if (!in_capture || captured) return in_capture;
  ++counters_.stream_waits;
  const MarkerRef marker = (*record)->marker;
  OperationInfo info = NewOperation(*caller, OpKind::kStreamWait, target.lane);
  info.object = static_cast<uint32_t>(event.raw());
  Note(TracePhase::kCall, info);
  NoteUse(*caller, **record, info);
  if (marker == nullptr) return {};
  OrderWithLegacy(*caller, target);
  const Epoch epoch = detector_.BeginIssue(caller->lane, target.lane);
  if (detector_.enabled() && RecordIsOrdered(*caller, *marker, info)) {
    detector_.clock(target.lane).Join(marker->clock);
  }
  detector_.EndIssue(caller->lane, epoch);
  EnqueueWait(target, marker, info);
  return {};
}

Expected<void> Core::Synchronize(const Event& event) {
  if (Expected<void> ok = CheckQuery(identity_, event); !ok) return ok;
  Lock lock;
  const Expected<Caller> caller =
      Enter(lock, OpKind::kHostWait, options_.latencies.host_query_call);
  if (!caller) return Unexpected(caller.error());
  const Expected<EventRecord*> found = FindEvent(event, *caller, OpKind::kHostWait);
  if (!found) return Unexpected(found.error());
  if ((*found)->captured_by != 0) return CapturedEvent(**found);
  if (Expected<void> ok = ForbiddenByCaptures(*caller, OpKind::kHostWait); !ok) return ok;
  OperationInfo info = NewCall(*caller, OpKind::kHostWait);
  info.object = static_cast<uint32_t>(event.raw());
  NoteUse(*caller, **found, info);
  const MarkerRef marker = (*found)->marker;
  if (marker == nullptr) return {};
  Note(TracePhase::kCall, info);
  const bool ordered = RecordIsOrdered(*caller, *marker, info);
  if (Expected<void> ok = WaitForMarker(lock, *caller, marker, info); !ok) return ok;
  if (ordered) detector_.Acquire(caller->lane, marker->clock, info);
  Note(TracePhase::kDone, info);
  return {};
}

}  // namespace h2d::fake_internal
