#include "h2d/stager/internal/fill_pool.h"

#include <algorithm>

namespace h2d::internal {

FillPool::~FillPool() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  work_.notify_all();
  for (const pthread_t thread : threads_) pthread_join(thread, nullptr);
}

void* FillPool::Run(void* pool) {
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
         pthread_create(&thread, nullptr, &FillPool::Run, this) == 0) {
    threads_.push_back(thread);
  }
}

void FillPool::Submit(FillJob& job) {
  if (threads_wanted_ == 0) {
    job.result = job.reader->Read(job.at, job.into);
    job.state = FillJob::State::kDone;
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    if (!started_) StartThreads();
    job.state = FillJob::State::kQueued;
    queue_.push_back(&job);
  }
  work_.notify_one();
}

void FillPool::Wait(FillJob& job) {
  if (threads_wanted_ == 0) return;
  std::unique_lock lock(mutex_);
  if (job.state == FillJob::State::kQueued) {
    queue_.erase(std::find(queue_.begin(), queue_.end(), &job));
    lock.unlock();
    job.result = job.reader->Read(job.at, job.into);
    job.state = FillJob::State::kDone;
    return;
  }
  done_.wait(lock, [&] { return job.state == FillJob::State::kDone; });
}

void FillPool::Work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    work_.wait(lock, [this] { return ending_ || !queue_.empty(); });
    if (queue_.empty()) return;
    FillJob& job = *queue_.front();
    queue_.pop_front();
    job.state = FillJob::State::kRunning;
    lock.unlock();
    job.result = job.reader->Read(job.at, job.into);
    lock.lock();
    job.state = FillJob::State::kDone;
    done_.notify_all();
  }
}

}  // namespace h2d::internal
