// Streams: handles, identities, the implicit order with the legacy default stream.
#include <string>
#include <utility>

#include "h2d/device/fake/internal/core.h"
#include "h2d/device/fake/internal/cuda_errors.h"

namespace h2d::fake_internal {
namespace {

// As in CUDA, the two default streams have small constant handles.
constexpr uintptr_t kLegacyHandle = 1;
constexpr uintptr_t kPerThreadHandle = 2;
constexpr uintptr_t kFirstHandle = 0x1000;
constexpr uintptr_t kHandleStep = 0x10;

void* HandleOf(uint32_t slot) noexcept {
  return reinterpret_cast<void*>(kFirstHandle + slot * kHandleStep);
}

}  // namespace

SimStream& Core::AddStream(StreamKind kind, bool blocking, std::string name) {
  SimStream& stream = *streams_.emplace_back(std::make_unique<SimStream>());
  const uint64_t number = next_stream_++;
  stream.id = tag_ << 32 | number;
  stream.kind = kind;
  stream.blocking = blocking;
  stream.lane = detector_.AddStreamLane(name.empty() ? "stream " + std::to_string(number - 1)
                                                     : std::move(name));
  by_id_[stream.id] = &stream;
  return stream;
}

Stream Core::NewStream(std::string_view name, StreamFlags flags) {
  Lock lock;
  const Expected<Caller> caller = Enter(lock, OpKind::kNewStream, Time(0));
  if (!caller && !lock.owns_lock()) lock = LockUnlessInKernel();
  SimStream& stream =
      AddStream(StreamKind::kOrdinary, flags == StreamFlags::kBlocking, std::string(name));
  if (free_slots_.empty()) {
    stream.slot = static_cast<uint32_t>(slots_.size());
    slots_.push_back(&stream);
  } else {
    stream.slot = free_slots_.back();
    free_slots_.pop_back();
    slots_[stream.slot] = &stream;
  }
  if (caller) Note(TracePhase::kCall, NewOperation(*caller, OpKind::kNewStream, stream.lane));
  return Stream::ForBackend(HandleOf(stream.slot), StreamKind::kOrdinary, stream.id, tag_);
}

Expected<void> Core::DestroyStream(const Stream& stream) {
  if (Expected<void> ok = CheckInspect(identity_, stream); !ok) return ok;
  Lock lock;
  const Expected<Caller> caller = Enter(lock, OpKind::kDestroyStream, Time(0));
  if (!caller) return Unexpected(caller.error());
  const Expected<SimStream*> found = Resolve(stream, *caller, OpKind::kDestroyStream);
  if (!found) return Unexpected(found.error());
  SimStream& target = **found;
  if (target.kind != StreamKind::kOrdinary) {
    return InvalidArgument("A default stream cannot be destroyed.");
  }
  if (target.capture != nullptr) {
    Invalidate(*target.capture);
    // Without its origin nobody could end it, and it would forbid calls for ever.
    if (target.capture->branches.front().stream == &target) TakeCapture(*target.capture);
  }
  target.destroyed = true;
  slots_[target.slot] = nullptr;
  free_slots_.push_back(target.slot);
  Note(TracePhase::kCall, NewOperation(*caller, OpKind::kDestroyStream, target.lane));
  return {};
}

Stream Core::LegacyStream() const noexcept {
  return Stream::ForBackend(reinterpret_cast<void*>(kLegacyHandle), StreamKind::kLegacyDefault, 0,
                            tag_);
}

Stream Core::PerThreadStream() const noexcept {
  return Stream::ForBackend(reinterpret_cast<void*>(kPerThreadHandle),
                            StreamKind::kPerThreadDefault, 0, tag_);
}

Expected<Stream> Core::Wrap(void* handle) {
  const Lock lock = LockUnlessInKernel();
  const auto value = reinterpret_cast<uintptr_t>(handle);
  if (value == kLegacyHandle) return LegacyStream();
  if (value == kPerThreadHandle) return PerThreadStream();
  const uintptr_t slot = (value - kFirstHandle) / kHandleStep;
  if (value < kFirstHandle || value % kHandleStep != 0 || slot >= slots_.size() ||
      slots_[slot] == nullptr) {
    return InvalidArgument("No stream has the handle " + std::to_string(value) + ".");
  }
  return Stream::ForBackend(handle, StreamKind::kOrdinary, slots_[slot]->id, tag_);
}

Expected<SimStream*> Core::Resolve(const Stream& stream, const Caller& caller, OpKind kind) {
  if (stream.kind() == StreamKind::kLegacyDefault) return legacy_;
  if (stream.kind() == StreamKind::kPerThreadDefault) {
    ThreadState& thread = threads_[caller.thread];
    if (thread.default_stream == nullptr) {
      thread.default_stream = &AddStream(StreamKind::kPerThreadDefault, true,
                                         "default stream of " + names_.lanes[caller.lane]);
    }
    return thread.default_stream;
  }
  const size_t slot = (reinterpret_cast<uintptr_t>(stream.handle()) - kFirstHandle) / kHandleStep;
  if (slot < slots_.size() && slots_[slot] != nullptr && slots_[slot]->id == stream.id()) {
    return slots_[slot];
  }
  const auto found = by_id_.find(stream.id());
  if (found == by_id_.end()) return InvalidArgument("The stream is none that this device made.");
  if (!found->second->destroyed) return found->second;
  const OperationInfo info = NewOperation(caller, kind, found->second->lane);
  const std::string& name = names_.lanes[found->second->lane];
  detector_.Report(HazardKind::kUseOfDestroyedHandle, nullptr, &info, name + " was destroyed");
  return InvalidArgument("The stream '" + name + "' was destroyed.");
}

// For the test's own grip on a stream, which reaches the work that a destroyed one still holds.
Expected<SimStream*> Core::ResolveOrDestroyed(const Stream& stream, const Caller& caller) {
  const auto found = by_id_.find(stream.id());
  if (found != by_id_.end()) return found->second;
  return Resolve(stream, caller, OpKind::kHold);
}

void Core::EnqueueWait(SimStream& stream, const MarkerRef& marker, const OperationInfo& info) {
  if (marker->complete) return;
  std::unique_ptr<Op> op = engine_.NewOp();
  op->info = info;
  op->info.kind = OpKind::kStreamWait;
  op->marker = marker;
  engine_.Enqueue(stream, std::move(op));
}

void Core::WaitForTail(SimStream& waiter, SimStream& stream) {
  if (detector_.enabled()) detector_.clock(waiter.lane).Join(detector_.clock(stream.lane));
  if (stream.queue.empty()) return;
  OperationInfo info;
  info.caller = info.lane = waiter.lane;
  EnqueueWait(waiter, engine_.TailOf(stream), info);
}

// Work on the legacy stream waits for all blocking streams' earlier work, and they for its.
void Core::OrderWithLegacy(const Caller&, SimStream& stream) {
  if (&stream != legacy_) {
    if (stream.blocking) WaitForTail(stream, *legacy_);
    return;
  }
  for (size_t i = 0; i < streams_.size(); ++i) {
    if (streams_[i]->blocking) WaitForTail(*legacy_, *streams_[i]);
  }
}

Expected<void> Core::Hold(const Stream& stream) {
  Lock lock;
  const Expected<Caller> caller = Enter(lock, OpKind::kHold, Time(0));
  if (!caller) return Unexpected(caller.error());
  const Expected<SimStream*> found = ResolveOrDestroyed(stream, *caller);
  if (!found) return Unexpected(found.error());
  engine_.Hold(**found);
  Note(TracePhase::kCall, NewOperation(*caller, OpKind::kHold, (*found)->lane));
  return {};
}

Expected<void> Core::Release(const Stream& stream) {
  Lock lock;
  const Expected<Caller> caller = Enter(lock, OpKind::kReleaseHold, Time(0));
  if (!caller) return Unexpected(caller.error());
  const Expected<SimStream*> found = ResolveOrDestroyed(stream, *caller);
  if (!found) return Unexpected(found.error());
  engine_.Release(**found);
  progressed_.notify_all();
  Note(TracePhase::kCall, NewOperation(*caller, OpKind::kReleaseHold, (*found)->lane));
  return {};
}

Expected<bool> Core::CompleteNext(const Stream& stream) {
  Lock lock;
  const Expected<Caller> caller = Enter(lock, OpKind::kOther, Time(0));
  if (!caller) return Unexpected(caller.error());
  const Expected<SimStream*> found = ResolveOrDestroyed(stream, *caller);
  if (!found) return Unexpected(found.error());
  const bool completed = engine_.CompleteHead(**found);
  progressed_.notify_all();
  return completed;
}

Expected<StreamStatus> Core::Inspect(const Stream& stream) {
  if (Expected<void> ok = CheckInspect(identity_, stream); !ok) return ErrorOf(ok);
  Lock lock;
  const Expected<Caller> caller =
      Enter(lock, OpKind::kInspect, options_.latencies.host_inspect_call);
  if (!caller) return Unexpected(caller.error());
  const Expected<SimStream*> found = Resolve(stream, *caller, OpKind::kInspect);
  if (!found) return Unexpected(found.error());
  ++counters_.inspections;
  const SimStream& target = **found;
  // Beside a capture of a blocking stream work on the legacy stream is refused like captured work.
  if (target.capture != nullptr || !ImplicitCapture(target, false)) return StreamStatus{true, 0};
  return StreamStatus{false, target.id};
}

Expected<StreamId> Core::RawStreamId(const Stream& stream) {
  if (Expected<void> ok = CheckInspect(identity_, stream); !ok) return ErrorOf(ok);
  Lock lock;
  const Expected<Caller> caller = Enter(lock, OpKind::kInspect, Time(53));
  if (!caller) return Unexpected(caller.error());
  const Expected<SimStream*> found = Resolve(stream, *caller, OpKind::kInspect);
  if (!found) return Unexpected(found.error());
  if ((*found)->capture != nullptr) {
    Invalidate(*(*found)->capture);
    return MakeError(ErrorCode::kDevice,
                     "The identity of a stream under capture was asked: the capture is invalid.",
                     cuda_errors::kStreamCaptureUnsupported);
  }
  return (*found)->id;
}

Expected<bool> Core::RawIsCapturing(const Stream& stream) {
  if (Expected<void> ok = CheckInspect(identity_, stream); !ok) return ErrorOf(ok);
  Lock lock;
  const Expected<Caller> caller =
      Enter(lock, OpKind::kInspect, options_.latencies.host_inspect_call);
  if (!caller) return Unexpected(caller.error());
  const Expected<SimStream*> found = Resolve(stream, *caller, OpKind::kInspect);
  if (!found) return Unexpected(found.error());
  if (Expected<void> ok = ImplicitCapture(**found, false); !ok) return ErrorOf(ok);
  return (*found)->capture != nullptr;
}

Expected<void> Core::SynchronizeStream(const Stream& stream) {
  if (Expected<void> ok = CheckInspect(identity_, stream); !ok) return ok;
  Lock lock;
  const Expected<Caller> caller =
      Enter(lock, OpKind::kHostWait, options_.latencies.host_query_call);
  if (!caller) return Unexpected(caller.error());
  const Expected<SimStream*> found = Resolve(stream, *caller, OpKind::kHostWait);
  if (!found) return Unexpected(found.error());
  SimStream& target = **found;
  if (target.capture != nullptr) {
    Invalidate(*target.capture);
    return MakeError(ErrorCode::kDevice, "A stream under capture cannot be synchronised.",
                     cuda_errors::kStreamCaptureUnsupported);
  }
  if (Expected<void> ok = ForbiddenByCaptures(*caller, OpKind::kHostWait); !ok) return ok;
  const OperationInfo info = NewOperation(*caller, OpKind::kHostWait, target.lane);
  Note(TracePhase::kCall, info);
  const Clock seen = detector_.clock(target.lane);
  const MarkerRef tail = engine_.TailOf(target);
  if (Expected<void> ok = WaitForMarker(lock, *caller, tail, info); !ok) return ok;
  detector_.Acquire(caller->lane, seen, info);
  Note(TracePhase::kDone, info);
  return {};
}

Expected<EventState> Core::QueryStream(const Stream& stream) {
  if (Expected<void> ok = CheckInspect(identity_, stream); !ok) return ErrorOf(ok);
  Lock lock;
  const Expected<Caller> caller = Enter(lock, OpKind::kQuery, options_.latencies.host_query_call);
  if (!caller) return Unexpected(caller.error());
  const Expected<SimStream*> found = Resolve(stream, *caller, OpKind::kQuery);
  if (!found) return Unexpected(found.error());
  if (Expected<void> ok = ForbiddenByCaptures(*caller, OpKind::kQuery); !ok) return ErrorOf(ok);
  const OperationInfo info = NewOperation(*caller, OpKind::kQuery, (*found)->lane);
  const bool done = (*found)->queue.empty() && Choose(*caller, ChoiceSite::kSeenLate, 2) == 0;
  Note(done ? TracePhase::kDone : TracePhase::kPending, info);
  if (!done) return EventState::kPending;
  detector_.Acquire(caller->lane, detector_.clock((*found)->lane), info);
  return EventState::kComplete;
}

Expected<void> Core::SynchronizeDevice() {
  Lock lock;
  const Expected<Caller> caller =
      Enter(lock, OpKind::kHostWait, options_.latencies.host_query_call);
  if (!caller) return Unexpected(caller.error());
  for (const auto& capture : captures_) Invalidate(*capture);  // in every mode, as measured
  if (!captures_.empty()) {
    return MakeError(ErrorCode::kDevice, "The device cannot be synchronised during a capture.",
                     cuda_errors::kStreamCaptureUnsupported);
  }
  const OperationInfo info = NewCall(*caller, OpKind::kHostWait);
  Note(TracePhase::kCall, info);
  Expected<void> done = WaitForDevice(lock, *caller, info);
  if (done) Note(TracePhase::kDone, info);
  return done;
}

}  // namespace h2d::fake_internal
