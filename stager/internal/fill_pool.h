// Threads that read pieces of sources into host memory. They never call a device.
#ifndef H2D_STAGER_INTERNAL_FILL_POOL_H_
#define H2D_STAGER_INTERNAL_FILL_POOL_H_

#include <pthread.h>
#include <semaphore.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <vector>

#include "h2d/device/brief_lock.h"
#include "h2d/device/error.h"
#include "h2d/stager/internal/source_reader.h"

namespace h2d::internal {

// One chunk to read, in pieces, each by whichever thread comes first. Its owner keeps it, the
// reader and the memory alive from `Submit` until `Finish` returned, and looks at `result` only
// then: the error of the foremost piece that failed.
struct FillJob {
  FillJob(const SourceReader& source, uint64_t from, std::span<std::byte> to, uint64_t piece)
      : reader(&source),
        at(from),
        into(to),
        piece_bytes(piece),
        pieces(static_cast<uint32_t>((to.size() + piece - 1) / piece)),
        failed_piece(pieces) {}

  const SourceReader* const reader;
  const uint64_t at;
  const std::span<std::byte> into;
  const uint64_t piece_bytes;
  const uint32_t pieces;
  Expected<void> result{};

  // The pool's.
  uint32_t claimed = 0;           // under the pool's lock
  uint32_t failed_piece;          // the same
  bool wakes = false;             // its pieces may wake threads
  std::atomic<uint32_t> done{0};  // pieces; who adds the last one touches the job no more
};

// Pieces are begun in the order of the jobs' submission. The thread that needs a job takes part in
// it, and in its source's later ones while others finish it: so nothing ever depends on the pool's
// threads, which join in as they wake.
//
// A sleeping thread takes longer to wake (30 to 60 us, measured on an H200 host) than a piece takes
// to read, and waking it costs the caller some of its time. So idle threads look for work for a
// while before they sleep; a job wakes threads only if it is said to be worth it; and who wakes
// wakes others.
//
// Locks are not those of sync.h. These are operating-system threads also beside a simulator's
// tasks: a task that waits for a job keeps its turn, the threads need no turn to finish, and so
// what the simulator sees does not depend on when they do.
//
// Thread-safe.
class FillPool {
 public:
  // `look_for`: how long idle threads look for work before they sleep. With 0 threads whoever
  // finishes a job reads all of it; of more than there are cores for, fewer are made.
  FillPool(uint32_t threads, std::chrono::nanoseconds look_for) noexcept;
  ~FillPool();
  FillPool(const FillPool&) = delete;
  FillPool& operator=(const FillPool&) = delete;

  // How many there are once they were needed.
  uint32_t threads() const noexcept { return threads_wanted_; }

  // `wake`: whether threads that sleep, or do not exist yet, are worth waking for it.
  void Submit(FillJob& job, bool wake);
  // Returns when the job is done; reads pieces of it meanwhile, and of its source's other jobs. Of
  // a source that many threads read only its own: a piece of a file takes longer than the device
  // takes to read a chunk, and nobody would send the next one.
  void Finish(FillJob& job);
  // Begins no more pieces of the job. `Finish` still waits for those that were begun.
  void Cancel(FillJob& job);

 private:
  struct Piece {
    FillJob* job = nullptr;
    uint32_t index = 0;
  };

  void StartThreads();
  void Work();
  bool ClaimAny(Piece* piece);
  bool ClaimFor(FillJob& job, Piece* piece);
  Piece ClaimFrom(std::deque<FillJob*>::iterator job);
  void Run(const Piece& piece);
  uint32_t ThreadsToWake();
  void Wake(uint32_t threads);
  bool Sleep();
  static void* Main(void* pool);

  const uint32_t threads_wanted_;
  const std::chrono::nanoseconds look_for_;

  // For what is below, up to the semaphore; held for a few dozen instructions.
  BriefLock lock_;
  std::deque<FillJob*> queue_;          // those with pieces that nobody has begun
  std::atomic<uint64_t> unclaimed_{0};  // their pieces, to look at without the lock
  uint64_t worth_waking_ = 0;           // of these, of jobs that wake
  uint32_t looking_ = 0;                // threads awake without a piece
  uint32_t sleeping_ = 0;               // threads in the semaphore that nobody has woken yet
  std::atomic<bool> ending_{false};
  sem_t sleep_;

  std::mutex done_mutex_;
  std::condition_variable done_;
  std::atomic<uint32_t> waiting_{0};  // threads that sleep until a job is done

  std::once_flag started_;
  std::vector<pthread_t> threads_;
};

}  // namespace h2d::internal

#endif  // H2D_STAGER_INTERNAL_FILL_POOL_H_
