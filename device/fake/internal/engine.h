// Virtual time and the streams' queues: what runs when. Knows nothing of memory or hazards.
#ifndef H2D_DEVICE_FAKE_INTERNAL_ENGINE_H_
#define H2D_DEVICE_FAKE_INTERNAL_ENGINE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <queue>
#include <string>
#include <vector>

#include "h2d/device/fake/fake_device.h"
#include "h2d/device/fake/internal/clock.h"
#include "h2d/device/fake/internal/operation_info.h"
#include "h2d/device/fake/internal/shadow.h"
#include "h2d/device/stream.h"

namespace h2d::fake_internal {

using Time = std::chrono::nanoseconds;
inline constexpr Time kForever = Time::max();

struct SimStream;
struct Capture;
struct PinnedBlock;

// A point in one stream's work; what a record makes of an event.
struct Marker {
  bool complete = false;
  const SimStream* stream = nullptr;
  Clock clock;     // what happens before whoever learns of the completion
  Epoch recorded;  // the record call, on its host lane
  OperationInfo record;
  std::vector<SimStream*> waiters;
};
using MarkerRef = std::shared_ptr<Marker>;

// One copy's bytes. Sources of pinned copies are read per chunk at one of three times.
enum class ReadTime : uint8_t { kAtCall, kAtStart, kAtEnd };

struct CopyPart {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  uint64_t bytes = 0;
  size_t staged = 0;  // where its bytes begin in `Op::staged`, which holds them as of the call
  std::vector<ReadTime> chunks;  // equal pieces; empty: all at the call
  PinnedBlock* block = nullptr;  // of a pinned source, which may be poisoned
  AccessRef source;              // null when the source is not tracked
  bool watch_at_start = false;   // host functions may still write the source before it starts
};

// Reads [begin, end) of the source into its place in `staged`.
void ReadPart(const CopyPart& part, size_t begin, size_t end, std::byte* staged);

struct Op {
  OperationInfo info;
  Time latency{0};
  uint64_t link_bytes = 0;     // crosses the link to the device, which is shared
  bool on_processors = false;  // occupies the multiprocessors, one at a time
  bool started = false;
  MarkerRef marker;                // kRecord: completes it; kStreamWait: waits for it
  std::vector<MarkerRef> records;  // complete with this operation
  std::vector<CopyPart> parts;
  std::vector<uint32_t> part_order;
  std::vector<std::byte> staged;
  std::shared_ptr<void> keep;  // what `parts` point to, when it is the operation's own
  std::shared_ptr<KernelSpec> kernel;
  std::shared_ptr<std::function<void()>> function;
  Epoch epoch;  // its end
  // kHostFunction: what happens before its present moment, as the clock of a host lane.
  std::unique_ptr<Clock> clock;
};

struct SimStream {
  uint32_t slot = 0;  // names the handle
  StreamId id = 0;
  LaneIndex lane = 0;
  StreamKind kind = StreamKind::kOrdinary;
  bool blocking = false;
  bool destroyed = false;
  Capture* capture = nullptr;

  std::deque<std::unique_ptr<Op>> queue;
  bool held = false;
  bool stuck = false;      // held by choice, not by the test
  bool scheduled = false;  // the head is in flight until `due`
  bool overdue = false;    // it reached the front of the time line while the stream was held
  Time due{0};
  bool waiting = false;   // listed in the waiters of the head's marker
  bool running = false;   // the head's effect is being carried out
  uint64_t schedule = 0;  // counts schedulings, to tell a stale one
};

// What operations do; called by the engine at the right times.
class Effects {
 public:
  virtual void Start(Op& op) = 0;
  virtual void Complete(Op& op, SimStream& stream) = 0;  // may let other threads use the engine

 protected:
  ~Effects() = default;
};

class Engine {
 public:
  Engine(Effects& effects, uint64_t link_bytes_per_second) noexcept
      : effects_(effects), link_bytes_per_second_(link_bytes_per_second) {}

  Time now() const noexcept { return now_; }
  size_t queued() const noexcept { return queued_; }

  std::unique_ptr<Op> NewOp();
  void Enqueue(SimStream& stream, std::unique_ptr<Op> op);
  // Makes `marker` stand for all that `stream` holds now: it completes with the newest operation.
  // On a held stream that holds nothing it is an operation of its own.
  void Record(SimStream& stream, MarkerRef marker, const OperationInfo& info);
  // A marker for all that `stream` holds now; complete already when it holds nothing.
  MarkerRef TailOf(SimStream& stream);

  // Completes what is due next, at `limit` at the latest; false when nothing is.
  bool Step(Time limit);
  bool CanStep(Time limit);
  // Lets time pass until `time`, and completes what is due until then.
  void AdvanceTo(Time time);

  void Hold(SimStream& stream) noexcept { stream.held = true; }
  // Holds it until it is released, like a device that never gets on.
  void Jam(SimStream& stream) noexcept { stream.held = stream.stuck = true; }
  void Release(SimStream& stream);
  bool CompleteHead(SimStream& stream);
  bool running() const noexcept { return running_ != 0; }
  // Nothing runs or completes any more: the device is dead.
  void Stop() noexcept { stopped_ = true; }

 private:
  struct Due {
    Time time;
    uint64_t sequence;  // ties are broken by the order of scheduling
    SimStream* stream;
    uint64_t schedule;
    bool operator>(const Due& other) const noexcept {
      return time != other.time ? time > other.time : sequence > other.sequence;
    }
  };

  void Settle(SimStream& stream);  // starts what can start, there and in streams it wakes
  void SettleOne(SimStream& stream);
  void StartHead(SimStream& stream, Op& op);
  void FinishHead(SimStream& stream);
  void PopHead(SimStream& stream);
  void Signal(Marker& marker);
  void DropStale();

  Effects& effects_;
  uint64_t link_bytes_per_second_;
  Time now_{0};
  Time link_free_{0};
  Time processors_free_{0};
  uint64_t sequence_ = 0;
  size_t queued_ = 0;
  size_t running_ = 0;
  bool stopped_ = false;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
  std::vector<SimStream*> unsettled_;
  bool settling_ = false;
  std::vector<std::unique_ptr<Op>> spare_;
};

}  // namespace h2d::fake_internal

#endif  // H2D_DEVICE_FAKE_INTERNAL_ENGINE_H_
