// The streams' queues of a `ReleaseQueue`.
#ifndef H2D_STAGER_INTERNAL_RELEASE_CORE_H_
#define H2D_STAGER_INTERNAL_RELEASE_CORE_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
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
// the order in which threads put batches in flight, each event stands for its own batch.
class ReleaseCore {
 public:
  ReleaseCore(std::shared_ptr<Device> device, const ReleaseQueueOptions& options);
  ~ReleaseCore();

  // The stream's identity, also while it is captured.
  struct Named {
    StreamId id = 0;
    bool capturing = false;
  };
  Expected<Named> Name(const Stream& stream) const;

  // Counts `bytes` and one item for the stream, or waits until it can.
  Expected<void> Reserve(const Named& named, const Stream& stream, uint64_t bytes);
  void GiveBack(StreamId id, uint64_t bytes) noexcept;

  // Takes a source that was reserved for; flushes at a mark.
  void Push(HeldSource&& source, StreamId id, const Stream& stream, uint64_t reserved);

  Expected<FlushOutcome> Flush(const Stream& stream);
  Expected<bool> ShouldFlush(const Stream& stream);
  Expected<uint64_t> Poll();
  Expected<void> Drain(std::chrono::nanoseconds timeout);
  ReleaseQueueStats Stats() const noexcept;

  // Waits until a batch in flight is complete, `Wake` was called after `Epoch` was read, or
  // `timeout` has passed. Releases nothing.
  Expected<void> Wait(std::chrono::nanoseconds timeout, uint64_t epoch);
  uint64_t Epoch() const noexcept { return wakeup_.Epoch(); }
  void Wake() noexcept { wakeup_.Notify(); }

  bool in_own_process() const noexcept { return process_ == CurrentProcess(); }

 private:
  static constexpr size_t kSpareEvents = 16;

  struct Held {
    HeldSource source;
    uint64_t bytes;  // as they were reserved
  };
  struct Batch {
    std::optional<Event> event;
    std::vector<Held> sources;
  };
  // Shared with those who wait for its event. They let go of it under the lock.
  using BatchRef = std::shared_ptr<Batch>;

  struct StreamQueue {
    Stream stream;
    std::vector<Held> open;
    uint64_t open_bytes = 0;
    std::deque<BatchRef> in_flight;
    uint64_t recording = 0;  // flushes that are between taking the open ones and putting them back
    uint64_t items = 0;      // reserved, open, recording or in flight
    uint64_t bytes = 0;
    bool due = false;  // a flush was put off
  };
  using Queues = std::map<StreamId, StreamQueue>;

  bool TryReserve(StreamId id, const Stream& stream, uint64_t bytes);
  Expected<void> WaitForRoom(StreamId id, const Stream& stream, uint64_t bytes);
  Unexpected AtLimit(StreamId id, ErrorCode code, const char* why);
  Expected<FlushOutcome> FlushKnown(StreamId id, const Stream& stream);
  BatchRef TakeOpen(StreamId id);
  Expected<void> RecordBatch(Batch& batch, const Stream& stream);
  void PutBack(StreamId id, BatchRef batch, bool recorded);
  Expected<void> FlushAll(bool only_due);
  Expected<uint64_t> Collect(std::optional<StreamId> only);
  Expected<void> CollectOne(StreamQueue& queue, std::vector<Held>& out) H2D_REQUIRES(mutex_);
  void Uncount(StreamQueue& queue, uint64_t items, uint64_t bytes) H2D_REQUIRES(mutex_);
  void DropIfEmpty(StreamId id) H2D_REQUIRES(mutex_);
  std::vector<BatchRef> InFlight(std::optional<StreamId> only, bool* recording);
  Expected<void> WaitForAny(std::vector<BatchRef> batches, std::chrono::nanoseconds timeout,
                            uint64_t epoch);
  void NotifyWaiters() H2D_REQUIRES(mutex_);

  const std::shared_ptr<Device> device_;
  const ReleaseQueueOptions options_;
  const ProcessEpoch process_ = CurrentProcess();
  Wakeup wakeup_;

  mutable Mutex mutex_;
  Queues queues_ H2D_GUARDED_BY(mutex_);
  std::vector<Event> spare_events_ H2D_GUARDED_BY(mutex_);
  uint32_t waiters_ H2D_GUARDED_BY(mutex_) = 0;
  ReleaseQueueStats stats_ H2D_GUARDED_BY(mutex_);
};

}  // namespace h2d::internal

#endif  // H2D_STAGER_INTERNAL_RELEASE_CORE_H_
