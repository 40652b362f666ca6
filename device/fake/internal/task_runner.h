// Runs host tasks one at a time and decides, by choices, which.
#ifndef H2D_DEVICE_FAKE_INTERNAL_TASK_RUNNER_H_
#define H2D_DEVICE_FAKE_INTERNAL_TASK_RUNNER_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "h2d/device/error.h"
#include "h2d/device/fake/internal/clock.h"
#include "h2d/device/fake/internal/core.h"
#include "h2d/device/fake/internal/host_context.h"
#include "h2d/device/sync.h"

namespace h2d::fake_internal {

// One run. The task that holds the baton is the only thread that touches anything here, so nothing
// but the baton itself is locked; handing it over is what sanitizers see as synchronisation.
class TaskRunner final : private HostScheduler, private SyncHooks {
 public:
  explicit TaskRunner(Core& core) : core_(core) {}

  Expected<void> Run(std::vector<std::function<void()>> functions);

 private:
  enum class State : uint8_t { kReady, kNeedsMutex, kWaits, kDone };
  struct Task {
    std::function<void()> function;
    State state = State::kReady;
    const void* mutex = nullptr;     // kNeedsMutex
    const HostWait* wait = nullptr;  // kWaits
    WakeReason reason = WakeReason::kReady;
    HostContext context;
    std::condition_variable gets_baton;
  };
  struct MutexState {
    bool held = false;
    size_t owner = 0;
    Clock clock;
  };
  struct Candidate {
    size_t task = 0;
    WakeReason reason = WakeReason::kReady;
  };
  static constexpr size_t kNobody = ~size_t{0};

  // HostScheduler
  void Point() override;
  WakeReason Wait(const HostWait& wait) override;
  // SyncHooks
  void Lock(const void* mutex) noexcept override;
  void Unlock(const void* mutex) noexcept override;
  void AtomicAccess(const void* object, Access access) noexcept override;

  void RunTask(size_t index);
  // Lets another task run, or `current_` go on, by choice; returns when the caller has the baton.
  void Reschedule();
  std::vector<Candidate> Candidates() const;
  void AddWaiting(std::vector<Candidate>& candidates) const;
  void GiveBaton(size_t to);
  void AwaitBaton(size_t me);
  void DeclareDeadlock();
  std::string WhoWaits() const;
  bool AllDone() const;

  Core& core_;
  std::vector<std::unique_ptr<Task>> tasks_;
  std::unordered_map<const void*, MutexState> mutexes_;
  std::unordered_map<const void*, Clock> atomics_;
  std::vector<uint32_t> offered_;  // the tasks of one choice
  size_t current_ = kNobody;       // who has the baton, as its holder sees it
  uint64_t points_ = 0;
  uint64_t points_in_a_row_ = 0;  // that let the same task go on while another could run
  bool broken_ = false;           // a deadlock: nothing blocks any more
  std::string deadlock_;

  std::mutex baton_;
  size_t holder_ = kNobody;  // guarded by `baton_`
  bool all_done_ = false;    // guarded by `baton_`
  std::condition_variable finished_;
};

}  // namespace h2d::fake_internal

#endif  // H2D_DEVICE_FAKE_INTERNAL_TASK_RUNNER_H_
