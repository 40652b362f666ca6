#include "h2d/stager/internal/fill_pool.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace h2d::internal {
namespace {

// How many threads one thread wakes at a time: a wake-up costs its maker 2 to 5 us, and those who
// wake do the same.
constexpr uint64_t kWokenAtOnce = 2;

// Looks until `seen` says yes, or the time has passed; answers which. Lets others run meanwhile.
template <class Seen>
bool LookFor(std::chrono::nanoseconds time, const Seen& seen) {
  const auto start = std::chrono::steady_clock::now();
  while (!seen()) {
    if (std::chrono::steady_clock::now() - start >= time) return false;
    sched_yield();
  }
  return true;
}

// Threads that look for work on the cores of those that have some are in their way.
uint32_t CoresForThreads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return ~uint32_t{0};
  return static_cast<uint32_t>(std::max(CPU_COUNT(&set) - 1, 1));
}

}  // namespace

FillPool::FillPool(uint32_t threads, std::chrono::nanoseconds look_for) noexcept
    : threads_wanted_(std::min(threads, CoresForThreads())), look_for_(look_for) {
  sem_init(&sleep_, 0, 0);
}

FillPool::~FillPool() {
  uint32_t asleep = 0;
  {
    const std::lock_guard lock(lock_);
    ending_ = true;
    asleep = std::exchange(sleeping_, 0);
  }
  Wake(asleep);
  for (const pthread_t thread : threads_) pthread_join(thread, nullptr);
  sem_destroy(&sleep_);
}

void* FillPool::Main(void* pool) {
  static_cast<FillPool*>(pool)->Work();
  return nullptr;
}

// As many as the system gives. Not `std::thread`, which can only throw when the system has no more.
void FillPool::StartThreads() {
  threads_.reserve(threads_wanted_);
  pthread_t thread = {};
  while (threads_.size() < threads_wanted_ &&
         pthread_create(&thread, nullptr, &FillPool::Main, this) == 0) {
    threads_.push_back(thread);
  }
}

void FillPool::Submit(FillJob& job, bool wake) {
  if (wake && threads_wanted_ > 0) std::call_once(started_, [this] { StartThreads(); });
  uint32_t to_wake = 0;
  {
    const std::lock_guard lock(lock_);
    job.wakes = wake;
    queue_.push_back(&job);
    unclaimed_.store(unclaimed_.load(std::memory_order_relaxed) + job.pieces,
                     std::memory_order_relaxed);
    // Who was woken for an earlier job of the source wakes others for this one.
    const bool first = worth_waking_ == 0;
    if (wake) worth_waking_ += job.pieces;
    if (first) to_wake = ThreadsToWake();
  }
  Wake(to_wake);
}

// How many the caller is to wake; from then on they count as looking.
uint32_t FillPool::ThreadsToWake() {
  const uint64_t lacking = worth_waking_ > looking_ ? worth_waking_ - looking_ : 0;
  const uint64_t wake = std::min({lacking, kWokenAtOnce, uint64_t{sleeping_}});
  sleeping_ -= static_cast<uint32_t>(wake);
  looking_ += static_cast<uint32_t>(wake);
  return static_cast<uint32_t>(wake);
}

void FillPool::Wake(uint32_t threads) {
  for (uint32_t i = 0; i < threads; ++i) sem_post(&sleep_);
}

FillPool::Piece FillPool::ClaimFrom(std::deque<FillJob*>::iterator at) {
  FillJob& job = **at;
  const Piece piece{&job, job.claimed++};
  unclaimed_.store(unclaimed_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
  if (job.wakes) --worth_waking_;
  if (job.claimed == job.pieces) queue_.erase(at);
  return piece;
}

// For a thread of the pool, which counts as looking until then.
bool FillPool::ClaimAny(Piece* piece) {
  uint32_t to_wake = 0;
  {
    const std::lock_guard lock(lock_);
    if (queue_.empty()) return false;
    *piece = ClaimFrom(queue_.begin());
    --looking_;
    to_wake = ThreadsToWake();
  }
  Wake(to_wake);
  return true;
}

// The next piece of the job, or else of another of its source.
bool FillPool::ClaimFor(FillJob& job, Piece* piece) {
  const std::lock_guard lock(lock_);
  auto at = queue_.end();
  if (job.claimed < job.pieces) {
    at = std::find(queue_.begin(), queue_.end(), &job);
  } else if (!job.reader->by_many_threads()) {
    at = std::find_if(queue_.begin(), queue_.end(),
                      [&](const FillJob* other) { return other->reader == job.reader; });
  }
  if (at == queue_.end()) return false;
  *piece = ClaimFrom(at);
  return true;
}

void FillPool::Cancel(FillJob& job) {
  uint32_t left = 0;
  {
    const std::lock_guard lock(lock_);
    left = job.pieces - std::exchange(job.claimed, job.pieces);
    if (left == 0) return;
    queue_.erase(std::find(queue_.begin(), queue_.end(), &job));
    unclaimed_.store(unclaimed_.load(std::memory_order_relaxed) - left, std::memory_order_relaxed);
    if (job.wakes) worth_waking_ -= left;
  }
  job.done.fetch_add(left);
}

void FillPool::Run(const Piece& piece) {
  FillJob& job = *piece.job;
  const uint64_t from = piece.index * job.piece_bytes;
  const uint64_t bytes = std::min<uint64_t>(job.piece_bytes, job.into.size() - from);
  auto read = job.reader->Read(job.at + from, job.into.subspan(from, bytes));
  if (!read) {
    const std::lock_guard lock(lock_);
    if (piece.index < job.failed_piece) {
      job.failed_piece = piece.index;
      job.result = std::move(read);
    }
  }
  const uint32_t pieces = job.pieces;
  // In one order with `waiting_`: either this thread sees who waits, or that one that it is done.
  if (job.done.fetch_add(1) + 1 < pieces || waiting_.load() == 0) return;
  const std::lock_guard lock(done_mutex_);
  done_.notify_all();
}

void FillPool::Finish(FillJob& job) {
  const auto is_done = [&] { return job.done.load() == job.pieces; };
  while (!is_done()) {
    Piece piece;
    if (ClaimFor(job, &piece)) {
      Run(piece);
      continue;
    }
    if (LookFor(look_for_, is_done)) return;
    std::unique_lock lock(done_mutex_);
    ++waiting_;
    done_.wait(lock, is_done);
    --waiting_;
  }
}

// Answers false at the end. Whoever wakes this thread counts it as looking.
bool FillPool::Sleep() {
  {
    const std::lock_guard lock(lock_);
    if (ending_) return false;
    if (!queue_.empty()) return true;
    --looking_;
    ++sleeping_;
  }
  while (sem_wait(&sleep_) != 0 && errno == EINTR) {
  }
  return !ending_;
}

void FillPool::Work() {
  const auto look = [this] {
    const std::lock_guard lock(lock_);
    ++looking_;
  };
  const auto has_work = [this] {
    return unclaimed_.load(std::memory_order_relaxed) > 0 || ending_.load();
  };
  look();
  for (;;) {
    Piece piece;
    if (ClaimAny(&piece)) {
      Run(piece);
      look();
    } else if (!LookFor(look_for_, has_work) || ending_) {
      if (!Sleep()) return;
    }
  }
}

}  // namespace h2d::internal
