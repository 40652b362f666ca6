// A simulated device: runs what a `Device` runs, in virtual time, with every legal delay, and
// reports races whatever schedule happened to run.
//
// THE FAULT MODEL. What the simulated device may do, because the documents allow a real one to:
//
//  * Streams are queues. An operation starts when its predecessors in the stream, and the events
//    that the stream waits for, are complete; it completes when its latency has passed in virtual
//    time, or when a test says so (`Hold`, `Release`, `CompleteNext`, `RunUntilIdle`). Latencies
//    vary by choice, so streams overtake one another. Every call of the host advances the clock a
//    little; a host that waits advances it as far as it must. Nothing ever depends on real time.
//  * The bytes of a pinned source are read at the call, when the copy starts, when it completes, or
//    in chunks each at one of the three, and so in any order. A pageable source is captured at the
//    call, or the call blocks until the copy is complete, or it is read as late as a pinned one.
//    Members of a batch complete in any order. An enqueue may block until its operation is
//    complete; under confidential computing every copy from pinned memory does.
//  * A completion may be seen late: a query answers "pending" although the work is done. A stream
//    may be stuck: what it holds stays pending until the test releases it.
//  * An allocation may take 20 ms. Freeing device memory waits for the whole device, and so does
//    `Trim`, which by its contract need not.
//  * Events, captures, graphs, the two default streams and errors behave as measured on an H200
//    with CUDA 13.0: a record snapshots its stream, a re-record replaces it for queries while
//    earlier waiters keep theirs, an event never recorded is complete, and so on.
//  * The handle of a destroyed stream is given to the next new stream; stream ids are never reused.
//  * Fresh pinned memory holds junk, equal in every run.
//
// Which of these happens is asked of one `ChoiceSource` (choice.h); 0, the answer of an absent
// source, is the kindest. A run is a function of its choices: `TraceHash` is equal in every build
// (I11), as long as the calls come from one thread or from the tasks of host_tasks.h.
//
// HAZARDS. The detector judges by happens-before over host tasks, streams, events and graphs, not
// by what happened to run: a write into a slot is a hazard unless the host *observed* the
// completion of each copy that reads it (a query or a wait that succeeded, or a wait that such a
// task handed on through a lock), even if the simulated copy is long complete. hazard.h lists what
// is reported. The verdict is that of each schedule in which streams and tasks get on otherwise,
// but for one thing: where the calls of two tasks meet in a queue, their order is the run's. That
// is so for the locks and atomics that tasks take in turn, and for the calls that unordered tasks
// make on one stream (or on the legacy stream and blocking ones), with one executable graph, or for
// one block of the pinned cache: an event that one task records stands for the work that another
// one enqueued before it in this run. Other seeds try the other orders, and the exploration
// (explore/exploration.h) all of them. Under address sanitizer the sources of copies in flight are
// poisoned besides (`FakeOptions::poison_sources`): a store that nobody announced dies where it is
// made.
//
// WHAT IS NOT DETECTED. A store into a source that nobody announced by `OnHostAccess` is found by
// comparing bytes: when the copy completes, when another copy reads the same bytes, when the host
// observes the completion, and at release. A store of equal bytes, or one that was undone before
// the next comparison, escapes. Host reads of pinned memory that nobody announced are invisible.
// Accesses to pageable memory are not tracked. There are no asynchronous copies to the host: what a
// step answers comes back by `ReadBack`, which waits. A host function that *waits* for another
// thread (spins on a flag, say) orders what its stream holds behind it only from its end on: work
// that was enqueued there earlier, and is ordered by that wait alone, is reported. What a host
// function does after more than 255 releases of locks and atomics counts as done before the last of
// them. Two records of one event that nothing orders are reported only when a use of it lies
// between them. A wait for, or a query of, the legacy stream covers the blocking streams' work only
// as far as work on the legacy stream came after it. With plain OS threads (no tasks) the host
// counts as one lane in the order of its calls: races between host threads are thread sanitizer's
// to find. What the program would have done after another answer is the explorer's to try.
//
// MEMORY. Operations cost memory while they are in flight; the detector keeps a segment for each
// byte range told apart and at most 64 MiB of sources to compare; the trace is bounded by its
// option. Streams and device allocations leave a few hundred bytes behind for the life of the
// device, and each stream ever made lengthens the vector clocks: make one device for a run, not for
// a process.
//
// Thread-safety: any number of threads, as `Device` says; except that the owner destroys streams,
// frees memory and reads results (`hazards`, `Timeline`) when no other thread uses them.
#ifndef H2D_DEVICE_FAKE_FAKE_DEVICE_H_
#define H2D_DEVICE_FAKE_FAKE_DEVICE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "h2d/device/device.h"
#include "h2d/device/fake/choice.h"
#include "h2d/device/fake/hazard.h"

namespace h2d {

namespace fake_internal {
class Core;
}  // namespace fake_internal

using VirtualTime = std::chrono::nanoseconds;  // since the device was made

// How long things take in virtual time: measured on an H200. Estimates; never part of correctness.
struct FakeLatencies {
  VirtualTime copy{6'600};  // a copy of no bytes, from start to completion
  uint64_t copy_bytes_per_second = 55'000'000'000;
  VirtualTime host_copy_call{1'350};  // what a call costs the host
  VirtualTime host_record_call{161};
  VirtualTime host_query_call{141};
  VirtualTime host_inspect_call{52};
  VirtualTime host_launch_call{2'000};
  VirtualTime host_allocation{34'000};
};

struct FakeOptions {
  FakeLatencies latencies{};
  // Page-locked memory that the machine has, cached blocks included; above it allocations fail.
  uint64_t pinned_limit_bytes = uint64_t{1} << 30;
  uint64_t device_limit_bytes = uint64_t{4} << 30;
  std::shared_ptr<ChoiceSource> choices{};  // null: the kindest
  ChoiceSites adversaries = ChoiceSites::Live();
  // A call that copies from pinned memory returns when its stream has carried it out, and so all
  // that the stream held before.
  bool confidential_computing = false;
  bool detect_hazards = true;
  // In builds with address sanitizer, while hazards are detected: the source of a copy may not be
  // touched until its completion was observed, but for accesses that `OnHostAccess` announced. A
  // *read* of it is legal and harmless; announce it, or turn this off.
  bool poison_sources = true;
  bool keep_trace = true;              // what `Timeline` shows; the hash is always computed
  size_t max_trace_records = 100'000;  // the oldest are forgotten
  size_t max_hazards = 64;             // later ones are counted only
  // True when plain OS threads share the device: then a wait that nothing in virtual time can end
  // waits in real time for the other threads. False: such a wait ends at its deadline at once.
  bool os_threads = false;
};

struct DeviceRange {
  DevicePtr ptr;
  uint64_t bytes = 0;
};

// What a simulated kernel, or a host function, sees of the device's memory while it runs. Ranges
// outside what the kernel declared are reported; ranges outside any allocation are empty spans.
class KernelMemory {
 public:
  std::span<const std::byte> Read(DevicePtr ptr, uint64_t bytes) const;
  std::span<std::byte> Write(DevicePtr ptr, uint64_t bytes) const;

 private:
  friend class fake_internal::Core;
  KernelMemory(fake_internal::Core& core, const void* operation) noexcept
      : core_(core), operation_(operation) {}

  fake_internal::Core& core_;
  const void* operation_;
};

// A simulated kernel. It occupies the multiprocessors for `duration`: one kernel at a time. `run`
// is called once, when the kernel executes; it may be empty; it makes no API calls.
struct KernelSpec {
  std::string name{};
  std::vector<DeviceRange> reads{};
  std::vector<DeviceRange> writes{};
  VirtualTime duration{5'000};
  std::function<void(const KernelMemory&)> run{};
};

enum class CaptureMode : uint8_t { kGlobal, kThreadLocal, kRelaxed };

enum class StreamFlags : uint8_t {
  kNonBlocking,  // no implicit order with the legacy default stream
  kBlocking,
};

// An executable graph: what a capture recorded. Copyable name of it; destroyed with its device.
class FakeGraph {
 public:
  size_t operations() const noexcept { return operations_; }
  uint64_t id() const noexcept { return id_; }

 private:
  friend class fake_internal::Core;
  FakeGraph(uint64_t id, size_t operations) noexcept : id_(id), operations_(operations) {}
  uint64_t id_;
  size_t operations_;
};

// Counts of what succeeded.
struct FakeCounters {
  uint64_t copies = 0;  // outside batches
  uint64_t batches = 0;
  uint64_t batch_copies = 0;  // members of batches
  uint64_t bytes_copied = 0;  // enqueued by copies and batches
  uint64_t records = 0;
  uint64_t queries = 0;  // looks at an event, those of waits included
  uint64_t waits = 0;    // calls that wait on the host
  uint64_t stream_waits = 0;
  uint64_t inspections = 0;
  uint64_t kernels = 0;
  uint64_t host_functions = 0;
  uint64_t graph_launches = 0;
  uint64_t events_created = 0;
  uint64_t events_destroyed = 0;
  uint64_t pinned_allocations = 0;         // calls
  uint64_t pinned_driver_allocations = 0;  // those that the cache could not serve
  uint64_t pinned_releases = 0;            // back to the cache
  uint64_t pinned_bytes = 0;               // held from the driver now, cached ones included
  uint64_t pinned_cached_bytes = 0;
  uint64_t device_allocations = 0;
  uint64_t device_frees = 0;
  VirtualTime kernel_time{0};  // the multiprocessors were busy
};

class FakeDevice final : public Device {
 public:
  static std::shared_ptr<FakeDevice> Create(FakeOptions options = {});
  ~FakeDevice() override;

  // --- Device: as a backend that never disturbs a capture

  Expected<PinnedBuffer> AllocatePinned(uint64_t bytes) override;
  Expected<void> Trim() override;
  Expected<MemoryKind> KindOf(std::span<const std::byte> memory) override;
  uint64_t MemorySpace() const noexcept override;
  Expected<void> CopyAsync(DevicePtr destination, std::span<const std::byte> source,
                           const Stream& stream) override;
  Expected<void> CopyBatchAsync(std::span<const CopyEntry> entries, const Stream& stream) override;
  Expected<Event> CreateEvent() override;
  Expected<void> Record(Event& event, const Stream& stream) override;
  Expected<EventState> Query(const Event& event) override;
  Expected<std::optional<size_t>> WaitAny(std::span<const Event* const> events,
                                          const WaitBounds& bounds) override;
  Expected<void> WaitEvent(const Stream& stream, const Event& event) override;
  Expected<StreamStatus> Inspect(const Stream& stream) override;
  void OnHostAccess(std::span<const std::byte> bytes, HostAccess access) noexcept override;

  // --- Device memory

  // These are the test's as much as an engine's, so captures do not judge them, although CUDA names
  // cudaMalloc among the calls that a capture may prohibit, and a synchronous copy waits like the
  // waits below, which are judged. Only the capturing stream itself cannot be read back on.

  // Zeroed.
  // Addresses are numbers that no host memory has: a host that dereferences one crashes. `name` is
  // what messages call it; "device N" without one. Errors: 0 bytes; the limit.
  Expected<DevicePtr> AllocateDevice(uint64_t bytes, std::string_view name = {});
  // Waits for the whole device first, as the driver's does. `ptr` is what `AllocateDevice`
  // answered. A hazard where a task's call that uses the memory is not ordered before the free's.
  Expected<void> FreeDevice(DevicePtr ptr);
  // The test's eye and hand: the bytes as they are now. No order, no hazard, no time.
  Expected<void> Peek(DevicePtr ptr, std::span<std::byte> bytes) const;
  Expected<void> Poke(DevicePtr ptr, std::span<const std::byte> bytes);
  // Reads in stream order and waits for it: a synchronous copy to the host. In pinned memory it is
  // a write by the host.
  Expected<void> ReadBack(DevicePtr ptr, std::span<std::byte> bytes, const Stream& stream);

  // --- Streams

  Stream NewStream(std::string_view name = {}, StreamFlags flags = StreamFlags::kNonBlocking);
  // Returns at once; what is queued still runs. The handle goes to the next new stream. A capture
  // that the stream is part of becomes invalid, and is over when it began on the stream.
  Expected<void> DestroyStream(const Stream& stream);
  Stream LegacyStream() const noexcept;
  Stream PerThreadStream() const noexcept;  // one handle, another stream in each thread
  // The stream that `handle` means now, as a backend wraps a raw handle.
  Expected<Stream> Wrap(void* handle) const;

  // A held stream completes nothing until it is released; `CompleteNext` reaches into it. All three
  // reach the work that a destroyed stream still holds.
  Expected<void> Hold(const Stream& stream);
  Expected<void> Release(const Stream& stream);
  // Completes the stream's oldest operation now, and the records behind it. False when there is
  // none, or it waits for an event that is not complete.
  Expected<bool> CompleteNext(const Stream& stream);
  // Lets virtual time pass until nothing can run; answers how many operations remain (on held
  // streams, or waiting for one).
  size_t RunUntilIdle();
  VirtualTime Now() const noexcept override;
  // The host works for `duration`: what completes meanwhile completes.
  void AdvanceTime(VirtualTime duration);

  // Wait on the host. A wait that nothing can end is an error and a `kDeadlock` hazard; never a
  // hang.
  Expected<void> SynchronizeStream(const Stream& stream);
  Expected<void> SynchronizeDevice();
  Expected<void> Synchronize(const Event& event);
  Expected<EventState> QueryStream(const Stream& stream);

  // --- Kernels, host functions, graphs

  Expected<void> Launch(const Stream& stream, KernelSpec kernel);
  Expected<void> LaunchHostFunc(const Stream& stream, std::function<void()> function);
  Expected<void> BeginCapture(const Stream& stream, CaptureMode mode = CaptureMode::kGlobal);
  // Errors: an invalidated, unjoined or absent capture; the capture is over in any case.
  Expected<FakeGraph> EndCapture(const Stream& stream);
  Expected<void> LaunchGraph(const FakeGraph& graph, const Stream& stream);
  // Sets the calling thread's mode and answers the one before.
  CaptureMode ExchangeCaptureMode(CaptureMode mode);

  // --- The driver's own calls, without a backend's care for captures

  // Each fails, and invalidates captures, exactly where the driver's
  // does.
  Expected<EventState> RawQuery(const Event& event);
  Expected<StreamId> RawStreamId(const Stream& stream);
  Expected<bool> RawIsCapturing(const Stream& stream);
  Expected<PinnedBuffer> RawAllocatePinned(uint64_t bytes);
  Expected<void> RawTrim();  // frees

  // --- Faults

  // A sticky
  // error, as after an illegal address: from now on every call fails with it and nothing completes.
  void Poison(Error error);

  // --- What was seen

  // The choices that
  // follow belong to operation `operation` of the calling thread's plan. Without a call, each call
  // of the host is an operation of its own: 0, 1, 2, ...
  void BeginOperation(uint64_t operation);
  // What messages call the calling thread's lane, or the buffer that `address` lies in. In these
  // and all names control characters are shown as blanks and bytes that are no UTF-8 as '?'.
  void NameTask(std::string_view name);
  void NamePinned(const void* address, std::string_view name);

  std::vector<Hazard> hazards() const;
  uint64_t hazard_count() const;  // those beyond `max_hazards` included
  void ClearHazards();
  FakeCounters counters() const;
  uint64_t TraceHash() const;
  // A time line in text, in lines of at most `columns` characters (60 or more): a column for each
  // host task and stream, operations in flight drawn from their calls to their completions, both
  // accesses of each hazard and the edge that is missing between them marked.
  std::string Timeline(size_t columns = 100) const;
  // The same run as JSON in Chrome's trace event format, which https://ui.perfetto.dev opens: a
  // process for the host's tasks, one for the streams, an arrow for each missing edge.
  std::string ChromeTrace() const;

  fake_internal::Core& core() noexcept { return *core_; }  // for the fake's own parts

 private:
  explicit FakeDevice(FakeOptions options);

  std::shared_ptr<fake_internal::Core> core_;
};

}  // namespace h2d

#endif  // H2D_DEVICE_FAKE_FAKE_DEVICE_H_
