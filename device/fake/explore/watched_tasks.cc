#include "h2d/device/fake/explore/watched_tasks.h"

#include <cstdint>
#include <utility>

#include "h2d/device/fake/host_tasks.h"
#include "h2d/device/sync.h"

namespace h2d {
namespace {

// In front of the hooks of the task runner.
class WatchingHooks final : public SyncHooks {
 public:
  WatchingHooks(Exploration& exploration, uint32_t task) noexcept
      : exploration_(exploration), task_(task), inner_(std::exchange(Current(), this)) {}
  ~WatchingHooks() override { Current() = inner_; }
  WatchingHooks(const WatchingHooks&) = delete;
  WatchingHooks& operator=(const WatchingHooks&) = delete;

  void Lock(const void* mutex) noexcept override {
    exploration_.Runs(task_);
    exploration_.Announce(One(mutex, Touch::kLock));
    inner_->Lock(mutex);
  }
  // The unlock belongs to the step that runs: the runner lets others run after it, not before.
  void Unlock(const void* mutex) noexcept override {
    exploration_.Add(exploration_.NameOf(mutex), Touch::kUnlock);
    exploration_.Announce({});
    inner_->Unlock(mutex);
  }
  void AtomicAccess(const void* object, Access access) noexcept override {
    const bool reads = access == Access::kAcquireLoad;
    exploration_.Announce(One(object, reads ? Touch::kRead : Touch::kWrite));
    inner_->AtomicAccess(object, access);
  }

 private:
  Footprint One(const void* object, Touch touch) {
    Footprint footprint;
    footprint.Add(exploration_.NameOf(object), touch);
    return footprint;
  }

  Exploration& exploration_;
  const uint32_t task_;
  SyncHooks* const inner_;
};

}  // namespace

Expected<void> RunWatchedTasks(FakeDevice& device, Exploration& exploration,
                               std::vector<std::function<void()>> tasks) {
  std::vector<std::function<void()>> watched;
  for (uint32_t i = 0; i < tasks.size(); ++i) {
    watched.push_back([&exploration, i, task = std::move(tasks[i])] {
      const WatchingHooks hooks(exploration, i);
      task();
    });
  }
  exploration.BeginTasks(static_cast<uint32_t>(watched.size()));
  Expected<void> ran = RunTasks(device, std::move(watched));
  exploration.EndTasks();
  return ran;
}

}  // namespace h2d
