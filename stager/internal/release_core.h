// The streams' queues of a `ReleaseQueue`.
#ifndef H2D_STAGER_INTERNAL_RELEASE_CORE_H_
#define H2D_STAGER_INTERNAL_RELEASE_CORE_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <thread>
#include <vector>

#include "h2d/device/device.h"
#include "h2d/device/process.h"
#include "h2d/device/sync.h"
#include "h2d/stager/flush_outcome.h"
#include "h2d/stager/held_source.h"
#include "h2d/stager/release_queue_options.h"
#include "h2d/stager/release_queue_stats.h"

namespace h2d::internal {

// A source is *open* after its push, then *in flight* with a batch that an event stands for, then
// released. While a flush records, outside the lock, its batch belongs to the flushing thread alone
// and goes in flight, or back to the open ones when the record failed. What is counted against the
// limits changes only at both ends: at the reservation and at the release.
//
// An event is recorded after every push of its batch, which came after the copy calls; so whatever
// the order in which threads put batches in flight, each event stands for its own batch, and for
// all that were taken before it on its stream: a completed one ends them all. So a batch whose own
// event fails to answer, which keeps its sources, ends with a younger one; and a flush takes it
// along to stand for it with a new event.
//
// Who waits at a limit waits in line: first come, first served.
//
// Only calls that name a stream use it, and those that flush all: whoever captures or destroys a
// stream knows of its own calls, not of other threads' calls that concern other streams.
class ReleaseCore {
 public:
  // What becomes of sources whose record failed.
  enum class OnFailedRecord : uint8_t {
    kKeep,   // kept for a later flush
    kLetGo,  // let go: they are no memory that the device reads
  };

  // For what is limited elsewhere: only a flush mark of so many items.
  static ReleaseQueueOptions Unlimited(uint64_t flush_items) noexcept;

  ReleaseCore(std::shared_ptr<Device> device, const ReleaseQueueOptions& options,
              OnFailedRecord on_failed_record = OnFailedRecord::kKeep);
  ~ReleaseCore();

  // The stream's identity, also while it is captured.
  struct Named {
    StreamId id = 0;
    bool capturing = false;
  };
  Expected<Named> Name(const Stream& stream) const;

  // Counts `bytes` and one item for the stream, or waits until it can, or `cancel` was requested.
  Expected<void> Reserve(const Named& named, const Stream& stream, uint64_t bytes,
                         const std::stop_token& cancel = {});
  void GiveBack(StreamId id, uint64_t bytes) noexcept;

  // Takes a source that was reserved for; flushes at a mark, or when a flush is due.
  void Push(HeldSource&& source, StreamId id, const Stream& stream, uint64_t reserved);
  // The same, and records an event for it whatever the marks. Releases what is complete, now and
  // then. Errors: the record's; the source was taken all the same.
  Expected<void> PushAndFlush(HeldSource&& source, StreamId id, const Stream& stream,
                              uint64_t reserved);
  // The same, and records nothing whatever the marks.
  void PushOpen(HeldSource&& source, StreamId id, uint64_t reserved);

  Expected<FlushOutcome> Flush(const Stream& stream);
  // The same for a stream whose identity is known, and that it is not captured.
  Expected<FlushOutcome> FlushKnown(StreamId id, const Stream& stream);
  Expected<bool> ShouldFlush(const Stream& stream);
  // Releases what is complete. Errors: of the events of `concern`, or of all streams without it.
  Expected<uint64_t> Poll(std::optional<StreamId> concern = std::nullopt);
  Expected<void> Drain(std::chrono::nanoseconds timeout);
  ReleaseQueueStats Stats() const noexcept;

  // Waits until a batch in flight is complete, `Wake` was called after `Epoch` was read, or
  // `timeout` has passed. Releases nothing. A batch whose event could not be asked for last time
  // fails the wait only when there is no other; else it bounds the wait, to be asked again.
  Expected<void> Wait(std::chrono::nanoseconds timeout, uint64_t epoch);
  uint64_t Epoch() const noexcept { return wakeup_.Epoch(); }
  void Wake() noexcept { wakeup_.Notify(); }

  bool in_own_process() const noexcept { return process_ == CurrentProcess(); }

 private:
  static constexpr size_t kSpareEvents = 64;
  // From so many batches in flight on a stream on, its pushes look for complete ones.
  static constexpr size_t kWorthALook = 8;

  struct Held {
    HeldSource source;
    uint64_t bytes;   // as they were reserved
    uint64_t number;  // of its push, from 1
  };
  struct Batch {
    std::optional<Event> event;
    std::vector<Held> sources;
    uint64_t oldest = 0;    // the lowest number of its sources
    uint64_t taken = 0;     // a number drawn before its record and after all its pushes
    bool complete = false;  // as was learnt
    bool unasked = false;   // the last query of its event failed
  };
  // Shared with those who wait for its event. They let go of it under the lock.
  using BatchRef = std::shared_ptr<Batch>;

  struct StreamQueue {
    Stream stream;
    std::vector<Held> open;
    uint64_t open_bytes = 0;
    std::deque<BatchRef> in_flight;  // by `taken`
    size_t look_at = kWorthALook;    // the batches in flight at which a push looks next
    // The oldest sources of flushes that are between taking the open ones and putting them back.
    std::multiset<uint64_t> recording{};
    uint64_t items = 0;  // reserved, open, recording or in flight
    uint64_t bytes = 0;
    bool due = false;                 // a flush was put off
    std::vector<uint64_t> waiting{};  // who waits at a limit, in line; such a queue is not dropped
  };
  using Queues = std::map<StreamId, StreamQueue>;

  // Complete sources that a thread is about to end, outside the lock.
  struct Release {
    std::thread::id thread;
    uint64_t oldest;
    std::vector<Held> sources;
  };

  // What is left of the sources up to a number, for a drain.
  struct Left {
    std::vector<StreamId> open;  // the streams
    bool pending = false;        // in flight, being recorded, or being released by another thread
    std::vector<BatchRef> in_flight;
  };

  StreamQueue& QueueFor(StreamId id, const Stream& stream) H2D_REQUIRES(mutex_);
  // A place in the line of those who wait at a limit; 0: not in it.
  bool TryReserve(StreamId id, const Stream& stream, uint64_t bytes, uint64_t place);
  uint64_t StandInLine(StreamId id, const Stream& stream);
  void LeaveLine(StreamId id, uint64_t place);
  Expected<void> WaitForRoom(StreamId id, const Stream& stream, uint64_t bytes, uint64_t place,
                             const std::stop_token& cancel);
  Unexpected AtLimit(StreamId id, ErrorCode code, const char* why);
  void Open(StreamQueue& queue, HeldSource&& source, uint64_t reserved) H2D_REQUIRES(mutex_);
  BatchRef TakeOpen(StreamQueue& queue, std::vector<BatchRef>& replaced) H2D_REQUIRES(mutex_);
  void TakeUnasked(StreamQueue& queue, std::vector<BatchRef>& replaced) H2D_REQUIRES(mutex_);
  Expected<void> RecordAndPutBack(StreamId id, BatchRef batch, const Stream& stream,
                                  bool* look = nullptr);
  Expected<void> RecordBatch(Batch& batch, const Stream& stream);
  bool PutBack(StreamId id, BatchRef batch, bool recorded);
  Expected<uint64_t> Collect(std::optional<StreamId> only, std::optional<StreamId> concern);
  enum class Answer : uint8_t { kPending, kComplete, kFailed };
  Answer Ask(Batch& batch, Expected<void>& result) H2D_REQUIRES(mutex_);
  size_t CountComplete(StreamQueue& queue, Expected<void>& result) H2D_REQUIRES(mutex_);
  Expected<void> CollectOne(StreamQueue& queue, std::vector<Held>& out) H2D_REQUIRES(mutex_);
  void EndSources(std::list<Release>::iterator own, std::vector<Held> sources);
  Release* ReleaseOfThisThread() H2D_REQUIRES(mutex_);
  void Uncount(StreamQueue& queue, uint64_t items, uint64_t bytes) H2D_REQUIRES(mutex_);
  void DropIfEmpty(StreamId id) H2D_REQUIRES(mutex_);
  std::vector<BatchRef> InFlight(StreamId id);
  bool AskableInFlight(std::vector<BatchRef>& out) H2D_REQUIRES(mutex_);
  Expected<void> WaitForAny(std::vector<BatchRef> batches, std::chrono::nanoseconds timeout,
                            uint64_t epoch);
  void NotifyWaiters() H2D_REQUIRES(mutex_);

  using Unflushed = std::map<StreamId, Error>;
  void FlushAll(uint64_t newest, Unflushed& failed);
  Expected<void> FlushNow(StreamId id, const Stream& stream);
  Left LookFor(uint64_t newest);
  Expected<void> DrainUpTo(uint64_t newest, std::chrono::nanoseconds timeout);
  bool HoldsSources();

  const std::shared_ptr<Device> device_;
  const ReleaseQueueOptions options_;
  const OnFailedRecord on_failed_record_;
  const ProcessEpoch process_ = CurrentProcess();
  Wakeup wakeup_;

  mutable Mutex mutex_;
  Queues queues_ H2D_GUARDED_BY(mutex_);
  std::vector<Event> spare_events_ H2D_GUARDED_BY(mutex_);
  std::list<Release> releases_ H2D_GUARDED_BY(mutex_);
  uint64_t last_number_ H2D_GUARDED_BY(mutex_) = 0;
  uint32_t waiters_ H2D_GUARDED_BY(mutex_) = 0;
  ReleaseQueueStats stats_ H2D_GUARDED_BY(mutex_);
};

}  // namespace h2d::internal

#endif  // H2D_STAGER_INTERNAL_RELEASE_CORE_H_
