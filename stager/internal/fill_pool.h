// Threads that read pieces of sources into host memory. They never call a device.
#ifndef H2D_STAGER_INTERNAL_FILL_POOL_H_
#define H2D_STAGER_INTERNAL_FILL_POOL_H_

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <vector>

#include "h2d/device/error.h"
#include "h2d/stager/internal/source_reader.h"

namespace h2d::internal {

// One piece to read. Its owner keeps it, the reader and the memory alive from `Submit` until
// `Wait` returned, and looks at `result` only then. Whoever sets `kDone` touches it no more.
struct FillJob {
  const SourceReader* reader = nullptr;
  uint64_t at = 0;
  std::span<std::byte> into{};
  Expected<void> result{};

  enum class State : uint8_t { kIdle, kQueued, kDone };
  std::atomic<State> state{State::kIdle};
};

// Jobs are begun in the order of their submission. Thread-safe.
//
// Who waits, for a job or for one to be done, looks again for a moment before it sleeps: a sleeping
// thread takes longer to wake than a chunk takes to read.
//
// The mutex is the standard one and not that of sync.h. These are operating-system threads also
// beside a simulator's tasks: a task that waits for a job keeps its turn, the threads need no turn
// to finish, and so what the simulator sees does not depend on when they do.
class FillPool {
 public:
  // With 0 threads each job runs at its submission.
  explicit FillPool(uint32_t threads) noexcept : threads_wanted_(threads) {}
  ~FillPool();
  FillPool(const FillPool&) = delete;
  FillPool& operator=(const FillPool&) = delete;

  void Submit(FillJob& job);
  // Returns when the job is done; runs it on the calling thread if none has begun it.
  void Wait(FillJob& job);

 private:
  void StartThreads();
  void Work();
  bool TakeBack(FillJob& job);
  static void* Main(void* pool);

  const uint32_t threads_wanted_;
  std::mutex mutex_;
  std::condition_variable work_;  // there is a job, or the end
  std::condition_variable done_;
  std::deque<FillJob*> queue_;
  std::atomic<size_t> queued_{0};  // its size, to look at without the mutex
  uint32_t sleepers_ = 0;          // threads that wait for a job to be done
  std::vector<pthread_t> threads_;
  bool started_ = false;
  bool ending_ = false;
};

}  // namespace h2d::internal

#endif  // H2D_STAGER_INTERNAL_FILL_POOL_H_
