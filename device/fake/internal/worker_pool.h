// OS threads that are kept for the next run: making one costs more than a small run of tasks.
#ifndef H2D_DEVICE_FAKE_INTERNAL_WORKER_POOL_H_
#define H2D_DEVICE_FAKE_INTERNAL_WORKER_POOL_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>

#include "h2d/device/process.h"

namespace h2d::fake_internal {

// Thread-safe. Never destroyed; its threads wait until the process ends.
class WorkerPool {
 public:
  // The pool of this process: a forked child has none of its parent's threads and gets its own.
  static WorkerPool& OfThisProcess();

  // Runs `job` on a thread of its own.
  void Start(std::function<void()> job);

 private:
  void Work();

  const ProcessEpoch process_ = CurrentProcess();
  std::mutex mutex_;
  std::condition_variable has_job_;
  std::deque<std::function<void()>> jobs_;
  size_t idle_ = 0;
};

}  // namespace h2d::fake_internal

#endif  // H2D_DEVICE_FAKE_INTERNAL_WORKER_POOL_H_
