#include "h2d/device/fake/internal/worker_pool.h"

#include <thread>
#include <utility>

namespace h2d::fake_internal {

WorkerPool& WorkerPool::OfThisProcess() {
  static std::mutex* const guard = new std::mutex;
  static WorkerPool* pool = nullptr;
  const std::lock_guard<std::mutex> lock(*guard);
  if (pool == nullptr || pool->process_ != CurrentProcess()) pool = new WorkerPool;
  return *pool;
}

void WorkerPool::Start(std::function<void()> job) {
  const std::lock_guard<std::mutex> lock(mutex_);
  jobs_.push_back(std::move(job));
  if (jobs_.size() > idle_) {
    std::thread([this] { Work(); }).detach();
  } else {
    has_job_.notify_one();
  }
}

void WorkerPool::Work() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    if (jobs_.empty()) {
      ++idle_;
      has_job_.wait(lock, [this] { return !jobs_.empty(); });
      --idle_;
    }
    {
      const std::function<void()> job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      job();
    }
    lock.lock();
  }
}

}  // namespace h2d::fake_internal
