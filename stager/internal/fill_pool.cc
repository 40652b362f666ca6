#include "h2d/stager/internal/fill_pool.h"

#include <sched.h>

#include <algorithm>
#include <chrono>

namespace h2d::internal {
namespace {

constexpr std::chrono::microseconds kMoment{50};

// Looks until `seen` says yes, or the moment has passed; answers which. Lets others run meanwhile.
template <class Seen>
bool LookForAMoment(const Seen& seen) {
  const auto end = std::chrono::steady_clock::now() + kMoment;
  while (!seen()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    sched_yield();
  }
  return true;
}

void Run(FillJob& job) {
  job.result = job.reader->Read(job.at, job.into);
  job.state.store(FillJob::State::kDone, std::memory_order_release);
}

}  // namespace

FillPool::~FillPool() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  work_.notify_all();
  for (const pthread_t thread : threads_) pthread_join(thread, nullptr);
}

void* FillPool::Main(void* pool) {
  static_cast<FillPool*>(pool)->Work();
  return nullptr;
}

// As many as the system gives: with fewer, or none, callers run what nobody has begun. Not
// `std::thread`, which can only throw when the system has no more.
void FillPool::StartThreads() {
  started_ = true;
  threads_.reserve(threads_wanted_);
  pthread_t thread = {};
  while (threads_.size() < threads_wanted_ &&
         pthread_create(&thread, nullptr, &FillPool::Main, this) == 0) {
    threads_.push_back(thread);
  }
}

void FillPool::Submit(FillJob& job) {
  if (threads_wanted_ == 0) return Run(job);
  {
    const std::lock_guard lock(mutex_);
    if (!started_) StartThreads();
    job.state.store(FillJob::State::kQueued, std::memory_order_relaxed);
    queue_.push_back(&job);
    queued_.store(queue_.size(), std::memory_order_relaxed);
  }
  work_.notify_one();
}

// Whether the job was still in the queue, and is not any more.
bool FillPool::TakeBack(FillJob& job) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find(queue_.begin(), queue_.end(), &job);
  if (found == queue_.end()) return false;
  queue_.erase(found);
  queued_.store(queue_.size(), std::memory_order_relaxed);
  return true;
}

void FillPool::Wait(FillJob& job) {
  const auto is_done = [&] {
    return job.state.load(std::memory_order_acquire) == FillJob::State::kDone;
  };
  if (is_done()) return;
  if (TakeBack(job)) return Run(job);
  if (LookForAMoment(is_done)) return;
  std::unique_lock lock(mutex_);
  ++sleepers_;
  done_.wait(lock, is_done);
  --sleepers_;
}

void FillPool::Work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (queue_.empty() && !ending_) {
      lock.unlock();
      LookForAMoment([this] { return queued_.load(std::memory_order_relaxed) > 0; });
      lock.lock();
    }
    work_.wait(lock, [this] { return ending_ || !queue_.empty(); });
    if (queue_.empty()) return;
    FillJob& job = *queue_.front();
    queue_.pop_front();
    queued_.store(queue_.size(), std::memory_order_relaxed);
    lock.unlock();
    Run(job);
    lock.lock();
    if (sleepers_ > 0) done_.notify_all();
  }
}

}  // namespace h2d::internal
