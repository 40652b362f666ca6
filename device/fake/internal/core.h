// What a `FakeDevice` is made of, and what its handles share with it.
#ifndef H2D_DEVICE_FAKE_INTERNAL_CORE_H_
#define H2D_DEVICE_FAKE_INTERNAL_CORE_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "h2d/device/argument_checks.h"
#include "h2d/device/fake/fake_device.h"
#include "h2d/device/fake/internal/capture.h"
#include "h2d/device/fake/internal/detector.h"
#include "h2d/device/fake/internal/engine.h"
#include "h2d/device/fake/internal/host_context.h"
#include "h2d/device/fake/internal/memory.h"
#include "h2d/device/fake/internal/trace.h"
#include "h2d/device/handle_owner.h"

namespace h2d::fake_internal {

// Who makes a call.
struct Caller {
  LaneIndex lane = 0;
  uint64_t thread = 0;
  uint64_t operation = 0;  // whose choices the call draws
  HostScheduler* scheduler = nullptr;
};

// A query or a wait of an event: the last one of its host lane.
struct EventUse {
  Epoch moment;
  OperationInfo operation;
};

struct EventRecord {
  MarkerRef marker;          // null: never recorded outside a capture
  uint64_t captured_by = 0;  // the capture that it was last recorded in
  std::vector<uint32_t> captured_after;
  std::vector<EventUse> uses;  // since this record; kept once there are tasks
};

class Core final : public HandleOwner, private Effects {
 public:
  explicit Core(FakeOptions options);
  ~Core() override;

  // Each is the method of `FakeDevice` with its name.
  Expected<PinnedBuffer> AllocatePinned(std::shared_ptr<Core> self, uint64_t bytes, bool raw);
  Expected<void> Trim(bool raw);
  Expected<MemoryKind> KindOf(std::span<const std::byte> memory);
  Expected<void> CopyAsync(DevicePtr to, std::span<const std::byte> from, const Stream& stream);
  Expected<void> CopyBatchAsync(std::span<const CopyEntry> entries, const Stream& stream);
  Expected<Event> CreateEvent(std::shared_ptr<Core> self);
  Expected<void> Record(Event& event, const Stream& stream);
  Expected<EventState> Query(const Event& event, bool raw);
  Expected<std::optional<size_t>> WaitAny(std::span<const Event* const> events,
                                          const WaitBounds& bounds);
  Expected<void> WaitEvent(const Stream& stream, const Event& event);
  Expected<StreamStatus> Inspect(const Stream& stream);
  void OnHostAccess(std::span<const std::byte> bytes, HostAccess access) noexcept;
  Expected<DevicePtr> AllocateDevice(uint64_t bytes, std::string_view name);
  Expected<void> FreeDevice(DevicePtr ptr);
  Expected<void> Peek(DevicePtr ptr, std::span<std::byte> bytes);
  Expected<void> Poke(DevicePtr ptr, std::span<const std::byte> bytes);
  Expected<void> ReadBack(DevicePtr ptr, std::span<std::byte> bytes, const Stream& stream);
  Stream NewStream(std::string_view name, StreamFlags flags);
  Expected<void> DestroyStream(const Stream& stream);
  Stream LegacyStream() const noexcept;
  Stream PerThreadStream() const noexcept;
  Expected<Stream> Wrap(void* handle);
  Expected<void> Hold(const Stream& stream);
  Expected<void> Release(const Stream& stream);
  Expected<bool> CompleteNext(const Stream& stream);
  size_t RunUntilIdle();
  Time Now() noexcept;
  void AdvanceTime(Time duration);
  Expected<void> SynchronizeStream(const Stream& stream);
  Expected<void> SynchronizeDevice();
  Expected<void> Synchronize(const Event& event);
  Expected<EventState> QueryStream(const Stream& stream);
  Expected<void> Launch(const Stream& stream, KernelSpec kernel);
  Expected<void> LaunchHostFunc(const Stream& stream, std::function<void()> function);
  Expected<void> BeginCapture(const Stream& stream, CaptureMode mode);
  Expected<FakeGraph> EndCapture(const Stream& stream);
  Expected<void> LaunchGraph(const FakeGraph& graph, const Stream& stream);
  CaptureMode ExchangeCaptureMode(CaptureMode mode);
  Expected<StreamId> RawStreamId(const Stream& stream);
  Expected<bool> RawIsCapturing(const Stream& stream);
  void Poison(Error error);
  void BeginOperation(uint64_t operation);
  void NameTask(std::string_view name);
  void NamePinned(const void* address, std::string_view name);
  std::vector<Hazard> Hazards();
  uint64_t HazardCount();
  void ClearHazards();
  FakeCounters Counters();
  uint64_t TraceHash();
  std::string Timeline(size_t columns);
  std::string ChromeTrace();

  uint64_t tag() const noexcept { return tag_; }

  // For kernels.
  std::span<std::byte> KernelBytes(const Op& op, DevicePtr ptr, uint64_t bytes, bool writes);

  // --- For the runner of host tasks --------------------------------------------------------------
  // The lane of the `index`-th task of a run that `parent` starts; the same in each run, because
  // `JoinLane` at its end puts all of it before what follows.
  LaneIndex TaskLane(size_t index, LaneIndex parent);
  LaneIndex CallingLane();
  void JoinLane(LaneIndex parent, LaneIndex child);
  void AcquireFrom(LaneIndex lane, const Clock& clock);
  // Makes `clock` hold what the lane has done; also what it held before when `join`.
  void ReleaseTo(LaneIndex lane, Clock& clock, bool join);
  // Which of `tasks`, by index, goes on.
  uint32_t ChooseTask(LaneIndex lane, std::span<const uint32_t> tasks);
  void ReportDeadlock(LaneIndex lane, std::string who_waits);
  static uint64_t NewThreadKey() noexcept;

  // --- HandleOwner
  void DestroyEvent(uint64_t raw) noexcept override;
  void ReleasePinned(std::byte* data, uint64_t bytes) noexcept override;

 private:
  using Lock = std::unique_lock<std::mutex>;
  struct HostLaneState {
    std::optional<uint64_t> operation;  // as told
    uint64_t calls = 0;
  };
  struct ThreadState {
    CaptureMode mode = CaptureMode::kGlobal;
    SimStream* default_stream = nullptr;
  };
  struct SourcePlace {
    PinnedBlock* block = nullptr;  // null: pageable
    MemoryRef ref;
  };
  struct EnqueuedCopy {
    DeviceAllocation* allocation = nullptr;
    MemoryRef destination;
    SourcePlace source;
    bool late = false;  // a pageable source that is read as late as a pinned one
  };
  // How a wait on the host ended.
  enum class WaitEnd : uint8_t { kReady, kTimeout, kWoken, kDeadlock };
  struct HostWaitBounds {
    Time deadline = kForever;
    const Wakeup* wakeup = nullptr;
    uint64_t seen = 0;
  };

  HostLaneState& HostLane(LaneIndex lane) {
    if (lane >= host_lanes_.size()) host_lanes_.resize(lane + 1);
    return host_lanes_[lane];
  }

  // core.cc: calls, choices, waits
  Expected<Caller> Enter(Lock& lock, OpKind kind, Time cost);
  Caller WhoCalls();
  Unexpected RefuseFromCallback(OpKind kind);
  Lock LockUnlessInKernel();
  uint32_t Choose(const Caller& caller, ChoiceSite site, uint32_t n);
  OperationInfo NewOperation(const Caller& caller, OpKind kind, LaneIndex lane);
  OperationInfo NewCall(const Caller& caller, OpKind kind) {
    return NewOperation(caller, kind, caller.lane);
  }
  void Note(TracePhase phase, const OperationInfo& op) { trace_.Add(engine_.now(), phase, op); }
  WaitEnd WaitOnHost(Lock& lock, const Caller& caller, const std::function<bool()>& ready,
                     const HostWaitBounds& bounds, const OperationInfo& info);
  WaitEnd WaitAsTask(Lock& lock, const Caller& caller, const std::function<bool()>& ready,
                     const HostWaitBounds& bounds, const OperationInfo& info);
  bool WaitForOtherThreads(Lock& lock, const HostWaitBounds& bounds, Time& waited);
  Expected<void> WaitForMarker(Lock& lock, const Caller& caller, const MarkerRef& marker,
                               const OperationInfo& info);
  Expected<void> WaitForDevice(Lock& lock, const Caller& caller, const OperationInfo& info);
  Unexpected Deadlock(const OperationInfo& info);
  std::string WhoWaits() const;

  // core_stream.cc
  SimStream& AddStream(StreamKind kind, bool blocking, std::string name);
  Expected<SimStream*> Resolve(const Stream& stream, const Caller& caller, OpKind kind);
  Expected<SimStream*> ResolveOrDestroyed(const Stream& stream, const Caller& caller);
  void OrderWithLegacy(const Caller& caller, SimStream& stream);
  void WaitForTail(SimStream& waiter, SimStream& stream);
  void EnqueueWait(SimStream& stream, const MarkerRef& marker, const OperationInfo& info);

  // core_copy.cc
  Expected<SourcePlace> FindSource(std::span<const std::byte> source, const Caller& caller,
                                   OpKind kind);
  Expected<DeviceAllocation*> FindDevice(DevicePtr ptr, uint64_t bytes, const Caller& caller,
                                         OpKind kind);
  Expected<void> IssueCopies(const Caller& caller, SimStream& stream, OpKind kind,
                             std::span<const CopyEntry> entries);
  void AddPart(const Caller& caller, Op& op, const EnqueuedCopy& copy, const CopyEntry& entry,
               const Order& order);
  std::vector<ReadTime> ChooseReads(const Caller& caller, uint64_t bytes, bool pinned);
  AccessRef NewAccess(const OperationInfo& info, Epoch epoch, const Clock& before);
  void JudgeHostAccess(const Caller& caller, PinnedBlock& block, const OperationInfo& info,
                       const MemoryRef& memory, bool writes);
  void Submit(const Caller& caller, SimStream& stream, std::unique_ptr<Op> op);
  void BlockUntilDone(SimStream& stream);
  void LandReadBack(const Caller& caller, OperationInfo info, const std::vector<std::byte>& bytes,
                    std::byte* to);
  Time LatencyOf(const Caller& caller, Time nominal);

  // core_event.cc
  Expected<EventRecord*> FindEvent(const Event& event, const Caller& caller, OpKind kind);
  bool IsCaptured(const Event& event) const;
  bool RecordIsOrdered(const Caller& caller, const Marker& marker, const OperationInfo& info);
  void NoteUse(const Caller& caller, EventRecord& event, const OperationInfo& info);
  void ReportUnorderedUses(const Caller& caller, const EventRecord& event,
                           const OperationInfo& record);
  Expected<bool> Look(const Caller& caller, const Event& event, const OperationInfo& info,
                      bool may_be_late);
  std::optional<size_t> AnswerOf(const Caller& caller, std::span<const MarkerRef> markers,
                                 const OperationInfo& info);

  // core_work.cc
  Expected<void> IssueKernel(const Caller& caller, SimStream& stream,
                             const std::shared_ptr<KernelSpec>& kernel);
  uint32_t KernelName(const std::string& name);
  Expected<void> IssueHostFunction(const Caller& caller, SimStream& stream,
                                   const std::shared_ptr<std::function<void()>>& function);
  void Start(Op& op) override;
  void Complete(Op& op, SimStream& stream) override;
  void CompleteParts(Op& op);
  void RunKernel(Op& op);
  void RunHostFunction(Op& op, SimStream& stream);

  // core_capture.cc
  // An error when a call that captures forbid is made by the calling thread now; the captures that
  // forbid it are invalidated.
  Expected<void> ForbiddenByCaptures(const Caller& caller, OpKind kind);
  // An error when `stream` is the legacy default stream and a blocking stream captures.
  Expected<void> ImplicitCapture(const SimStream& stream, bool invalidate);
  // Records `work` when the stream captures; answers whether it does.
  Expected<bool> Captured(SimStream& stream, GraphWork work);
  Expected<void> WaitInCapture(SimStream& stream, const EventRecord& event, bool& captured);
  Unexpected CapturedEvent(const EventRecord& event);
  static Unexpected InvalidatedCapture();
  void Invalidate(Capture& capture) noexcept { capture.invalidated = true; }
  Capture* FindCapture(uint64_t id) noexcept;
  Expected<void> IssueGraph(const Caller& caller, SimStream& stream, Graph& graph);
  Expected<void> IssueNodes(const Caller& caller, SimStream& stream, Graph& graph);
  void CaptureGraph(SimStream& stream, const Graph& graph);
  // Ends `capture` for its streams and for the calls that it forbids.
  std::unique_ptr<Capture> TakeCapture(Capture& capture);

  const FakeOptions options_;
  const uint64_t tag_;
  const DeviceIdentity identity_;
  std::mutex mutex_;
  std::condition_variable progressed_;  // something completed or was enqueued (OS threads)
  Names names_;
  Detector detector_;
  Trace trace_;
  Engine engine_;
  DeviceMemory device_memory_;
  PinnedMemory pinned_memory_;
  bool confidential_ = false;
  std::optional<Error> poison_;
  FakeCounters counters_;
  uint64_t next_operation_ = 0;
  uint64_t next_event_ = 1;
  uint64_t next_graph_ = 1;
  uint64_t next_capture_ = 1;
  uint64_t next_stream_ = 1;
  uint64_t fruitless_queries_ = 0;
  std::vector<std::unique_ptr<SimStream>> streams_;
  std::vector<SimStream*> slots_;     // by handle
  std::vector<uint32_t> free_slots_;  // the newest is given out first
  std::unordered_map<StreamId, SimStream*> by_id_;
  SimStream* legacy_ = nullptr;
  std::unordered_map<uint64_t, EventRecord> events_;
  std::unordered_map<uint64_t, ThreadState> threads_;
  std::vector<HostLaneState> host_lanes_;           // by lane
  std::vector<std::unique_ptr<Capture>> captures_;  // not ended
  std::unordered_map<uint64_t, std::unique_ptr<Graph>> graphs_;
  std::unordered_map<std::string, uint32_t> kernel_names_;
  std::vector<LaneIndex> task_lanes_;
};

}  // namespace h2d::fake_internal

#endif  // H2D_DEVICE_FAKE_INTERNAL_CORE_H_
