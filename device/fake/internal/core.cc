#include "h2d/device/fake/internal/core.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>

#include "h2d/device/fake/view/chrome_trace.h"
#include "h2d/device/fake/view/timeline.h"

namespace h2d::fake_internal {
namespace {

// A deadline further away than any run: a wait with such a one waits for ever.
constexpr Time kNever = std::chrono::hours(24 * 365);
// How long OS threads are waited for when only they could end a wait without a deadline.
constexpr Time kMaxRealWait = std::chrono::seconds(30);

class WithoutHooks {
 public:
  WithoutHooks() noexcept : hooks_(std::exchange(SyncHooks::Current(), nullptr)) {}
  ~WithoutHooks() { SyncHooks::Current() = hooks_; }
  WithoutHooks(const WithoutHooks&) = delete;
  WithoutHooks& operator=(const WithoutHooks&) = delete;

 private:
  SyncHooks* hooks_;
};

bool Moved(const Wakeup* wakeup, uint64_t seen) {
  if (wakeup == nullptr) return false;
  const WithoutHooks plain;
  return wakeup->Epoch() != seen;
}

}  // namespace

Core::Core(FakeOptions options)
    : options_(std::move(options)),
      tag_(NextDeviceTag()),
      identity_{this, tag_},
      detector_({.enabled = options_.detect_hazards,
                 .max_hazards = options_.max_hazards,
                 .poison_sources = options_.poison_sources},
                names_),
      trace_(options_.keep_trace, options_.max_trace_records),
      engine_(*this, options_.latencies.copy_bytes_per_second),
      device_memory_(options_.device_limit_bytes),
      pinned_memory_(options_.pinned_limit_bytes) {
  names_.kernels.emplace_back();
  detector_.AddHostLane("host");
  legacy_ = &AddStream(StreamKind::kLegacyDefault, false, "legacy stream");
  const Caller device{0, 0, kDeviceOperation, nullptr};
  confidential_ =
      Choose(device, ChoiceSite::kConfidential, 2) != 0 || options_.confidential_computing;
}

Core::~Core() = default;

uint64_t Core::NewThreadKey() noexcept {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

Caller Core::WhoCalls() {
  const HostContext* context = HostContext::Current();
  if (context != nullptr && context->core == this) {
    return {context->lane, context->thread, 0, context->scheduler};
  }
  static thread_local const uint64_t thread = NewThreadKey();
  return {0, thread, 0, nullptr};
}

Core::Lock Core::LockUnlessInKernel() {
  const CallbackContext* callback = CallbackContext::Current();
  if (callback != nullptr && callback->core == this && callback->locked) return Lock();
  return Lock(mutex_);
}

Unexpected Core::RefuseFromCallback(OpKind kind) {
  const CallbackContext& callback = *CallbackContext::Current();
  const Lock lock = LockUnlessInKernel();
  OperationInfo info;
  info.kind = kind;
  info.number = next_operation_++;
  info.lane = info.caller = callback.lane;
  info.time = engine_.now();
  detector_.Report(HazardKind::kCallFromHostFunction, &callback.op->info, &info,
                   "no API call may be made from a host function or a kernel");
  return FailedPrecondition("A " + std::string(ToString(kind)) + " was called from inside " +
                            Describe(callback.op->info, names_) + ", which may call no API.");
}

Expected<Caller> Core::Enter(Lock& lock, OpKind kind, Time cost) {
  if (!in_own_process()) return argument_errors::ForkedChild();
  const CallbackContext* callback = CallbackContext::Current();
  if (callback != nullptr && callback->core == this) return RefuseFromCallback(kind);
  Caller caller = WhoCalls();
  if (caller.scheduler != nullptr) caller.scheduler->Point();
  lock = Lock(mutex_);
  if (poison_) return Unexpected(*poison_);
  HostLaneState& state = HostLane(caller.lane);
  caller.operation =
      state.operation.value_or(static_cast<uint64_t>(caller.lane) << 32 | state.calls++);
  engine_.AdvanceTo(engine_.now() + cost);
  return caller;
}

uint32_t Core::Choose(const Caller& caller, ChoiceSite site, uint32_t n) {
  if (options_.choices == nullptr || !options_.adversaries.contains(site)) return 0;
  const uint32_t answer = options_.choices->Choose(caller.operation, site, n);
  trace_.AddChoice(caller.operation, site, answer);
  return answer;
}

OperationInfo Core::NewOperation(const Caller& caller, OpKind kind, LaneIndex lane) {
  OperationInfo info;
  info.kind = kind;
  info.caller = caller.lane;
  info.lane = lane;
  info.number = next_operation_++;
  info.time = engine_.now();
  return info;
}

// --- Waits -------------------------------------------------------------------------------------

std::string Core::WhoWaits() const {
  std::string text;
  for (const auto& stream : streams_) {
    if (stream->queue.empty()) continue;
    const Op& head = *stream->queue.front();
    text += text.empty() ? "" : "; ";
    text += names_.lanes[stream->lane] + " holds " + std::to_string(stream->queue.size()) +
            (stream->queue.size() == 1 ? " operation and " : " operations and ");
    if (stream->held) {
      text += stream->stuck ? "is stuck" : "is held by the test";
    } else if (stream->running) {
      text += "runs " + Describe(head.info, names_);
    } else if (head.info.kind == OpKind::kStreamWait && !head.marker->complete) {
      text += "waits for a record on " + names_.lanes[head.marker->stream->lane];
    } else {
      text += "can run " + Describe(head.info, names_);
    }
  }
  return text.empty() ? "no stream holds any operation" : text;
}

Unexpected Core::Deadlock(const OperationInfo& info) {
  const std::string who = WhoWaits();
  detector_.Report(HazardKind::kDeadlock, nullptr, &info, who);
  return FailedPrecondition("Deadlock: " + names_.lanes[info.caller] + " waits in " +
                            Describe(info, names_) + ", and nothing can run: " + who + ".");
}

Core::WaitEnd Core::WaitAsTask(Lock& lock, const Caller& caller, const std::function<bool()>& ready,
                               const HostWaitBounds& bounds, const OperationInfo& info) {
  HostWait wait;
  wait.has_deadline = bounds.deadline < kNever;
  wait.what = Describe(info, names_);
  const auto over = [&] {
    return ready() || Moved(bounds.wakeup, bounds.seen) || engine_.now() >= bounds.deadline;
  };
  wait.ready = [&] {
    const Lock held(mutex_);
    return poison_ || over();
  };
  wait.can_advance = [&] {
    const Lock held(mutex_);
    return engine_.CanStep(bounds.deadline);
  };
  while (!over()) {
    lock.unlock();
    const WakeReason reason = caller.scheduler->Wait(wait);
    lock.lock();
    if (poison_) return WaitEnd::kReady;
    if (reason == WakeReason::kDeadlock) return WaitEnd::kDeadlock;
    if (reason == WakeReason::kAdvanceTime && !engine_.Step(bounds.deadline)) {
      engine_.AdvanceTo(bounds.deadline);
    }
  }
  if (ready()) return WaitEnd::kReady;
  return Moved(bounds.wakeup, bounds.seen) ? WaitEnd::kWoken : WaitEnd::kTimeout;
}

bool Core::WaitForOtherThreads(Lock& lock, const HostWaitBounds& bounds, Time& waited) {
  const Time limit = std::min(bounds.deadline - engine_.now(), kMaxRealWait);
  if (waited >= limit) return false;
  const auto start = std::chrono::steady_clock::now();
  progressed_.wait_for(lock, std::chrono::microseconds(50));
  waited += std::chrono::duration_cast<Time>(std::chrono::steady_clock::now() - start);
  return true;
}

Core::WaitEnd Core::WaitOnHost(Lock& lock, const Caller& caller, const std::function<bool()>& ready,
                               const HostWaitBounds& bounds, const OperationInfo& info) {
  ++counters_.waits;
  if (caller.scheduler != nullptr) return WaitAsTask(lock, caller, ready, bounds, info);
  Time waited{0};  // in real time, for other threads
  for (;;) {
    if (poison_ || ready()) return WaitEnd::kReady;
    if (Moved(bounds.wakeup, bounds.seen)) return WaitEnd::kWoken;
    if (engine_.now() >= bounds.deadline) return WaitEnd::kTimeout;
    if (engine_.Step(bounds.deadline)) {
      progressed_.notify_all();
      continue;
    }
    const bool others = options_.os_threads || engine_.running();
    if (others && WaitForOtherThreads(lock, bounds, waited)) continue;
    if (bounds.deadline >= kNever) return WaitEnd::kDeadlock;
    engine_.AdvanceTo(bounds.deadline);
  }
}

Expected<void> Core::WaitForMarker(Lock& lock, const Caller& caller, const MarkerRef& marker,
                                   const OperationInfo& info) {
  const WaitEnd end = WaitOnHost(
      lock, caller, [&] { return marker->complete; }, {}, info);
  if (poison_) return Unexpected(*poison_);
  if (end != WaitEnd::kReady) return Deadlock(info);
  return {};
}

Expected<void> Core::WaitForDevice(Lock& lock, const Caller& caller, const OperationInfo& info) {
  std::vector<MarkerRef> tails;
  Clock seen;
  for (size_t i = 0; i < streams_.size(); ++i) {
    tails.push_back(engine_.TailOf(*streams_[i]));
    if (detector_.enabled()) seen.Join(detector_.clock(streams_[i]->lane));
  }
  for (const MarkerRef& tail : tails) {
    if (Expected<void> ok = WaitForMarker(lock, caller, tail, info); !ok) return ok;
  }
  detector_.Acquire(caller.lane, seen, info);
  return {};
}

// --- Time --------------------------------------------------------------------------------------

Time Core::Now() noexcept {
  const Lock lock = LockUnlessInKernel();
  return engine_.now();
}

void Core::AdvanceTime(Time duration) {
  Lock lock;
  if (!Enter(lock, OpKind::kOther, duration)) return;
}

size_t Core::RunUntilIdle() {
  Lock lock;
  if (!Enter(lock, OpKind::kOther, Time(0))) return 0;
  while (engine_.Step(kForever)) {
  }
  progressed_.notify_all();
  return engine_.queued();
}

void Core::Poison(Error error) {
  const Lock lock = LockUnlessInKernel();
  poison_ = std::move(error);
  engine_.Stop();
  progressed_.notify_all();
}

// --- What was seen -----------------------------------------------------------------------------

void Core::BeginOperation(uint64_t operation) {
  const Lock lock = LockUnlessInKernel();
  HostLane(WhoCalls().lane).operation = operation;
}

void Core::NameTask(std::string_view name) {
  const Lock lock = LockUnlessInKernel();
  names_.lanes[WhoCalls().lane] = std::string(name);
}

void Core::NamePinned(const void* address, std::string_view name) {
  const Lock lock = LockUnlessInKernel();
  const PinnedBlock* block = pinned_memory_.Find(static_cast<const std::byte*>(address));
  if (block != nullptr) names_.pinned[block->id] = std::string(name);
}

std::vector<Hazard> Core::Hazards() {
  const Lock lock = LockUnlessInKernel();
  return detector_.hazards();
}

uint64_t Core::HazardCount() {
  const Lock lock = LockUnlessInKernel();
  return detector_.count();
}

void Core::ClearHazards() {
  const Lock lock = LockUnlessInKernel();
  detector_.Clear();
}

FakeCounters Core::Counters() {
  const Lock lock = LockUnlessInKernel();
  FakeCounters counters = counters_;
  counters.pinned_bytes = pinned_memory_.bytes();
  counters.pinned_cached_bytes = pinned_memory_.cached_bytes();
  return counters;
}

uint64_t Core::TraceHash() {
  const Lock lock = LockUnlessInKernel();
  return trace_.hash();
}

std::string Core::Timeline(size_t columns) {
  const Lock lock = LockUnlessInKernel();
  return RenderTimeline(trace_, names_, detector_.hazards(), columns);
}

std::string Core::ChromeTrace() {
  const Lock lock = LockUnlessInKernel();
  return RenderChromeTrace(trace_, names_, detector_.hazards());
}

// --- For the runner of host tasks --------------------------------------------------------------

LaneIndex Core::TaskLane(size_t index, LaneIndex parent) {
  const Lock lock(mutex_);
  while (task_lanes_.size() <= index) {
    task_lanes_.push_back(detector_.AddHostLane("task " + std::to_string(task_lanes_.size())));
  }
  const LaneIndex lane = task_lanes_[index];
  HostLane(lane).operation.reset();
  detector_.clock(lane).Join(detector_.clock(parent));
  detector_.Tick(lane);  // at its end an earlier run's task was seen with all that it had done
  detector_.Tick(parent);
  return lane;
}

LaneIndex Core::CallingLane() { return WhoCalls().lane; }

void Core::JoinLane(LaneIndex parent, LaneIndex child) {
  const Lock lock(mutex_);
  detector_.clock(parent).Join(detector_.clock(child));
}

void Core::AcquireFrom(LaneIndex lane, const Clock& clock) {
  const Lock lock(mutex_);
  if (!detector_.enabled()) return;
  const CallbackContext* callback = CallbackContext::Current();
  (callback == nullptr ? detector_.clock(lane) : *callback->op->clock).Join(clock);
}

void Core::ReleaseTo(LaneIndex lane, Clock& clock, bool join) {
  const Lock lock(mutex_);
  if (!detector_.enabled()) return;
  if (!join) clock = Clock();
  if (const CallbackContext* callback = CallbackContext::Current()) {
    Clock& function = *callback->op->clock;
    const Epoch end = callback->op->epoch;
    clock.Join(function);
    function.Set(end.lane, std::min(function.at(end.lane) + 1, end.time));
    return;
  }
  clock.Join(detector_.clock(lane));
  detector_.Tick(lane);
}

uint32_t Core::ChooseTask(LaneIndex lane, std::span<const uint32_t> tasks) {
  const Lock lock(mutex_);
  if (options_.choices != nullptr) options_.choices->OnTasks(tasks);
  if (tasks.size() < 2) return 0;
  HostLaneState& state = HostLane(lane);
  Caller caller{lane, 0, 0, nullptr};
  caller.operation = state.operation.value_or(static_cast<uint64_t>(lane) << 32 | state.calls);
  return Choose(caller, ChoiceSite::kTask, static_cast<uint32_t>(tasks.size()));
}

void Core::ReportDeadlock(LaneIndex lane, std::string who_waits) {
  const Lock lock(mutex_);
  OperationInfo info = NewCall(Caller{lane, 0, 0, nullptr}, OpKind::kHostWait);
  detector_.Report(HazardKind::kDeadlock, nullptr, &info, who_waits + "; " + WhoWaits());
}

}  // namespace h2d::fake_internal
