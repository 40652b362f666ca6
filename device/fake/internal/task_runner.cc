#include "h2d/device/fake/internal/task_runner.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "h2d/device/fake/internal/worker_pool.h"

namespace h2d::fake_internal {
namespace {

// A task that polls lets the others run after so many points, even if the choices never do.
constexpr uint64_t kMaxPointsInARow = 1'000;
// Tasks that only poll one another never end: a run of so many points is taken for one.
constexpr uint64_t kMaxPoints = 20'000'000;

// A kernel runs inside the device's lock, where no task may take over.
bool InKernel() noexcept {
  const CallbackContext* callback = CallbackContext::Current();
  return callback != nullptr && callback->locked;
}

}  // namespace

Expected<void> TaskRunner::Run(std::vector<std::function<void()>> functions) {
  if (functions.empty()) return {};
  if (HostContext::Current() != nullptr) {
    return FailedPrecondition("Tasks cannot be run from inside a task.");
  }
  const LaneIndex parent = core_.CallingLane();
  for (size_t i = 0; i < functions.size(); ++i) {
    Task& task = *tasks_.emplace_back(std::make_unique<Task>());
    task.function = std::move(functions[i]);
    task.context = {&core_, core_.TaskLane(i, parent), Core::NewThreadKey(), this};
  }
  for (size_t i = 0; i < tasks_.size(); ++i) {
    WorkerPool::OfThisProcess().Start([this, i] { RunTask(i); });
  }
  offered_.resize(tasks_.size());
  std::iota(offered_.begin(), offered_.end(), 0U);
  GiveBaton(core_.ChooseTask(parent, offered_));
  {
    std::unique_lock<std::mutex> lock(baton_);
    finished_.wait(lock, [this] { return all_done_; });
  }
  for (const auto& task : tasks_) core_.JoinLane(parent, task->context.lane);
  if (broken_) return FailedPrecondition("The host tasks wait for one another: " + deadlock_ + ".");
  return {};
}

void TaskRunner::RunTask(size_t index) {
  Task& task = *tasks_[index];
  AwaitBaton(index);
  HostContext::Current() = &task.context;
  SyncHooks::Current() = this;
  task.function();
  SyncHooks::Current() = nullptr;
  HostContext::Current() = nullptr;
  task.function = nullptr;
  task.state = State::kDone;
  if (!AllDone()) {
    Reschedule();  // does not come back to a task that is done
    return;
  }
  const std::lock_guard<std::mutex> lock(baton_);
  all_done_ = true;
  finished_.notify_one();  // under the lock: the runner may die as soon as it is seen
}

bool TaskRunner::AllDone() const {
  return std::all_of(tasks_.begin(), tasks_.end(),
                     [](const auto& task) { return task->state == State::kDone; });
}

void TaskRunner::GiveBaton(size_t to) {
  const std::lock_guard<std::mutex> lock(baton_);
  holder_ = to;
  tasks_[to]->gets_baton.notify_one();
}

void TaskRunner::AwaitBaton(size_t me) {
  std::unique_lock<std::mutex> lock(baton_);
  tasks_[me]->gets_baton.wait(lock, [&] { return holder_ == me; });
  current_ = me;
}

// First the task that runs now, then those that can run at once, then those whose wait is over,
// then those whose wait could end if time passed: so the kindest choice lets a task go on.
std::vector<TaskRunner::Candidate> TaskRunner::Candidates() const {
  std::vector<Candidate> candidates;
  const auto can_run = [&](const Task& task) {
    if (task.state == State::kReady) return true;
    if (task.state != State::kNeedsMutex) return false;
    const auto found = mutexes_.find(task.mutex);
    return broken_ || found == mutexes_.end() || !found->second.held;
  };
  if (can_run(*tasks_[current_])) candidates.push_back({current_, WakeReason::kReady});
  for (size_t i = 0; i < tasks_.size(); ++i) {
    if (i != current_ && can_run(*tasks_[i])) candidates.push_back({i, WakeReason::kReady});
  }
  AddWaiting(candidates);
  return candidates;
}

void TaskRunner::AddWaiting(std::vector<Candidate>& candidates) const {
  std::vector<Candidate> later;
  std::vector<Candidate> at_deadline;
  for (size_t i = 0; i < tasks_.size(); ++i) {
    const Task& task = *tasks_[i];
    if (task.state != State::kWaits) continue;
    if (broken_) {
      candidates.push_back({i, WakeReason::kDeadlock});
    } else if (task.wait->ready()) {
      candidates.push_back({i, WakeReason::kReady});
    } else if (task.wait->can_advance()) {
      later.push_back({i, WakeReason::kAdvanceTime});
    } else if (task.wait->has_deadline) {
      at_deadline.push_back({i, WakeReason::kAdvanceTime});
    }
  }
  candidates.insert(candidates.end(), later.begin(), later.end());
  if (candidates.empty()) candidates = std::move(at_deadline);
}

void TaskRunner::Reschedule() {
  const size_t me = current_;
  if (++points_ > kMaxPoints && !broken_) DeclareDeadlock();
  std::vector<Candidate> candidates = Candidates();
  if (candidates.empty()) {
    DeclareDeadlock();
    candidates = Candidates();
  }
  offered_.clear();
  for (const Candidate& candidate : candidates) {
    offered_.push_back(static_cast<uint32_t>(candidate.task));
  }
  size_t pick = core_.ChooseTask(tasks_[me]->context.lane, offered_);
  if (candidates.size() > 1) {
    if (candidates[pick].task != me) points_in_a_row_ = 0;
    if (++points_in_a_row_ > kMaxPointsInARow) {
      pick = 1;
      points_in_a_row_ = 0;
    }
  }
  const auto [next, reason] = candidates[pick];
  tasks_[next]->reason = reason;
  if (next == me) return;
  const bool done = tasks_[me]->state == State::kDone;
  GiveBaton(next);
  if (!done) AwaitBaton(me);
}

void TaskRunner::Point() { Reschedule(); }

WakeReason TaskRunner::Wait(const HostWait& wait) {
  if (broken_) return WakeReason::kDeadlock;
  Task& me = *tasks_[current_];
  me.wait = &wait;
  me.state = State::kWaits;
  Reschedule();
  me.state = State::kReady;
  me.wait = nullptr;
  return me.reason;
}

void TaskRunner::Lock(const void* mutex) noexcept {
  if (InKernel()) return;
  Task& me = *tasks_[current_];
  me.state = State::kNeedsMutex;
  me.mutex = mutex;
  Reschedule();  // comes back when the mutex is free, or at once when it is
  me.state = State::kReady;
  MutexState& state = mutexes_[mutex];
  state.held = true;
  state.owner = current_;
  core_.AcquireFrom(me.context.lane, state.clock);
}

void TaskRunner::Unlock(const void* mutex) noexcept {
  if (InKernel()) return;
  MutexState& state = mutexes_[mutex];
  core_.ReleaseTo(tasks_[current_]->context.lane, state.clock, false);
  state.held = false;
  Reschedule();
}

void TaskRunner::AtomicAccess(const void* object, Access access) noexcept {
  if (InKernel()) return;
  Reschedule();
  const LaneIndex lane = tasks_[current_]->context.lane;
  Clock& clock = atomics_[object];
  if (access != Access::kReleaseStore) core_.AcquireFrom(lane, clock);
  if (access != Access::kAcquireLoad) {
    core_.ReleaseTo(lane, clock, access == Access::kReadModifyWrite);
  }
}

std::string TaskRunner::WhoWaits() const {
  std::string text;
  for (size_t i = 0; i < tasks_.size(); ++i) {
    const Task& task = *tasks_[i];
    if (task.state == State::kDone) continue;
    text += text.empty() ? "" : "; ";
    text += "task " + std::to_string(i);
    if (task.state == State::kReady) text += " polls without end";
    if (task.state == State::kWaits) text += " waits in " + task.wait->what;
    if (task.state == State::kNeedsMutex) {
      text += " waits for a mutex that task " + std::to_string(mutexes_.at(task.mutex).owner) +
              " holds";
    }
  }
  return text;
}

void TaskRunner::DeclareDeadlock() {
  deadlock_ = WhoWaits();
  broken_ = true;
  core_.ReportDeadlock(tasks_[current_]->context.lane, deadlock_);
}

}  // namespace h2d::fake_internal
