// Keeps the sources of copies alive until the device has read them.
//
//   auto queue = h2d::ReleaseQueue::Create(device);
//   device->CopyAsync(destination, std::as_bytes(std::span(values)), stream);
//   (*queue)->Push(h2d::HeldSource(std::move(values)), stream);
//
// A source is released (its owner dies, or its callback is called) once an event that was recorded
// on its stream after the push has been observed to be complete, and never before (I1). One event
// stands for a batch of sources. Releases happen on the threads that call the queue, outside its
// lock, and never in a host function of the device.
#ifndef H2D_STAGER_RELEASE_QUEUE_H_
#define H2D_STAGER_RELEASE_QUEUE_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>

#include "h2d/device/device.h"
#include "h2d/stager/flush_outcome.h"
#include "h2d/stager/held_source.h"
#include "h2d/stager/release_queue_options.h"
#include "h2d/stager/release_queue_stats.h"

namespace h2d {

namespace internal {
class ReleaseCore;
}  // namespace internal

// Thread-safety: any number of threads may share a queue.
//
// Order. A source is pushed after the call that enqueued its copy, on the same stream; also when
// that call failed, because a failed enqueue may have been made. A copy that was *captured* is read
// again at every replay: its source is the graph's to keep alive, not this queue's.
//
// Streams. They are told apart by identity. A call uses the stream that it names; `Drain` and the
// destructor use each stream with sources that no event stands for yet. REQUIRES: those streams
// exist then, and nobody begins their capture meanwhile: `Flush` a stream before destroying it. On
// a per-thread default stream, which other threads cannot name, each push flushes.
//
// Failures. An event that fails to answer is no completion: its sources stay. They are released
// when a later poll, of that event or of a younger one on its stream, says complete; a flush of the
// stream records an event for them anew.
//
// Callbacks may call the queue, and do not wait behind those who wait. What is complete by then is
// released when the callback has returned, and no longer counts for the limits.
//
// Lifetime. The queue holds its device alive. Its destructor waits for its own sources, as `Drain`
// does, and for those that their callbacks push; what can no longer be learnt of (an error of the
// device, a stream that is still being captured) is leaked on purpose (I9).
class ReleaseQueue {
 public:
  // Errors: `kInvalidArgument` for a null device and for options out of range.
  [[nodiscard]] static Expected<std::unique_ptr<ReleaseQueue>> Create(
      std::shared_ptr<Device> device, const ReleaseQueueOptions& options = {});

  ReleaseQueue(const ReleaseQueue&) = delete;
  ReleaseQueue& operator=(const ReleaseQueue&) = delete;
  ~ReleaseQueue();

  // Takes `source`, whose copy was enqueued on `stream`, and flushes the stream when a mark is
  // reached. At a limit it flushes and waits, outside every lock, for this stream's own sources;
  // a stream that stands still holds back nobody else.
  // Errors, with which `source` is still the caller's, who keeps it alive and may push it again:
  //   kInvalidArgument     an empty source; a stream of another device
  //   kFailedPrecondition  a forked child; a default stream that is being captured
  //   kResourceExhausted   at a limit, while the stream is being captured
  //   kUnavailable         at a limit for `wait_timeout`
  //   kDevice              the device failed
  [[nodiscard]] Expected<void> Push(HeldSource&& source, const Stream& stream);

  // Room for one source, taken before its copy is enqueued, so that the push itself waits for
  // nothing and does not fail.
  // Move-only; given back when it dies unused. It must not outlive its queue.
  class Room {
   public:
    Room(Room&& other) noexcept;
    Room& operator=(Room&&) = delete;
    ~Room();

   private:
    friend class ReleaseQueue;
    Room(internal::ReleaseCore& core, const Stream& stream, StreamId id, uint64_t bytes) noexcept
        : core_(&core), stream_(stream), id_(id), bytes_(bytes) {}
    bool IsOf(const Stream& stream) const noexcept;
    internal::ReleaseCore* core_;
    Stream stream_;
    StreamId id_;
    // A per-thread default stream is another one in each thread.
    std::thread::id thread_ = std::this_thread::get_id();
    uint64_t bytes_;
  };

  // Waits and fails as `Push` does.
  [[nodiscard]] Expected<Room> Reserve(uint64_t bytes, const Stream& stream);
  // `source` counts as the bytes that were reserved; `stream` is that of the reservation, or the
  // source would be released when that one has come past.
  // Errors, with which `source` is still the caller's, and so is the room: `kInvalidArgument` for
  // an empty source and for a room that was used, is another queue's or was reserved for another
  // stream; `kFailedPrecondition` in a forked child.
  [[nodiscard]] Expected<void> Push(HeldSource&& source, const Stream& stream, Room&& room);

  // Records an event for all that was pushed on `stream` and has none, or has one that failed to
  // answer. Never waits.
  // Errors: the device's; then the sources stay, and a later flush stands for them.
  [[nodiscard]] Expected<FlushOutcome> Flush(const Stream& stream);

  // Whether a flush of `stream` is due that was put off, by a capture or a failed record. The next
  // push on the stream tries it again by itself; where none may come, call `Flush`.
  [[nodiscard]] Expected<bool> ShouldFlush(const Stream& stream);

  // Asks the device what is complete, and releases it. Never waits, and uses no stream: it may run
  // beside anybody's capture. Answers how many sources were released. Errors: the first of the
  // device, once a call, however many events failed to answer; the rest was done.
  [[nodiscard]] Expected<uint64_t> Poll();

  // Flushes every stream and waits until all that was pushed before the call is released: callbacks
  // that other threads run have returned by then, unless it is called within one. What is pushed
  // meanwhile is not waited for. Errors: `kUnavailable` after `timeout`; `kFailedPrecondition` when
  // a stream is being captured, with all others drained; the device's.
  [[nodiscard]] Expected<void> Drain(
      std::chrono::nanoseconds timeout = std::chrono::nanoseconds::max());

  ReleaseQueueStats stats() const noexcept;

 private:
  explicit ReleaseQueue(std::unique_ptr<internal::ReleaseCore> core) noexcept;

  std::unique_ptr<internal::ReleaseCore> core_;
};

}  // namespace h2d

#endif  // H2D_STAGER_RELEASE_QUEUE_H_
