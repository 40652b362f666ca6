// A backend of `Device` at its simplest. Comments that begin with "A backend" say what one of real
// hardware does at that place.
#include "h2d/device/host/host_device.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "h2d/device/host/pinned_cache.h"

namespace h2d {
namespace {

// All host devices address the memory of this one process: a destination of one is a destination of
// every other. A backend gives each space of its own another number, far from this one.
constexpr uint64_t kHostMemorySpace = 0x486f7374'4d656d00;

// A complete event holds nothing, so all events share one name.
// A backend keeps the driver's handle here, or an index into a table of its own.
constexpr uint64_t kCompleteEvent = 1;

StreamId NextStreamId() noexcept {
  static std::atomic<StreamId> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

// The identity of the calling thread's default stream: another for each pair of thread and device,
// made from both numbers so that no table and no lock is needed. The top bit keeps it apart from
// `NextStreamId`; there is room for 2^31 devices and 2^32 threads in the life of a process.
StreamId PerThreadStreamId(uint64_t device_tag) noexcept {
  static std::atomic<uint64_t> next_thread{0};
  thread_local const uint64_t thread = next_thread.fetch_add(1, std::memory_order_relaxed);
  return uint64_t{1} << 63 | device_tag << 32 | thread;
}

std::chrono::nanoseconds SteadyNow() noexcept {
  return std::chrono::steady_clock::now().time_since_epoch();
}

// Waits without an event to wait for: until a bound is reached.
// Naps instead of spinning, and longer ones the longer it takes: the first is shorter than a small
// copy, the last is short beside what a person notices. A backend polls its events in between.
void WaitForBounds(const WaitBounds& bounds) {
  using std::chrono::nanoseconds;
  constexpr nanoseconds kFirstNap{1'000};
  constexpr nanoseconds kLongestNap{200'000};

  const nanoseconds start = SteadyNow();
  nanoseconds nap = kFirstNap;
  while (bounds.wakeup == nullptr || bounds.wakeup->Epoch() == bounds.seen) {
    // Compares durations: `start + timeout` would overflow for a wait without end.
    const nanoseconds waited = SteadyNow() - start;
    if (waited >= bounds.timeout) return;
    std::this_thread::sleep_for(std::min(nap, bounds.timeout - waited));
    nap = std::min(nap * 2, kLongestNap);
  }
}

}  // namespace

// Every handle shares this object, so it lives as long as the longest-lived of them and the device.
// A backend keeps here what its handles need in order to die: its cache, and what it calls the
// driver with. It takes care to call nothing once the driver is being unloaded.
class HostDevice::State final : public HandleOwner {
 public:
  explicit State(const HostOptions& options)
      : cache_(std::make_unique<HostPinnedCache>(options.max_pinned_bytes)) {}

  // In a forked child nothing is freed: a thread that does not exist there may hold the cache's
  // lock, and a backend's driver does not work there.
  ~State() override {
    if (!in_own_process()) static_cast<void>(cache_.release());
  }

  // A backend destroys the event, or keeps it for the next `CreateEvent`.
  void DestroyEvent(uint64_t) noexcept override {}

  // To the cache, never to the driver, whose free waits for the whole device.
  void ReleasePinned(std::byte* data, uint64_t) noexcept override { cache_->Return(data); }

  HostPinnedCache& cache() noexcept { return *cache_; }

 private:
  std::unique_ptr<HostPinnedCache> cache_;
};

std::shared_ptr<HostDevice> HostDevice::Create(HostOptions options) {
  return std::shared_ptr<HostDevice>(new HostDevice(options));
}

// A backend that can fail to open its device answers an `Expected` from `Create`, and opens it
// there. Its tag may be one for all of its objects that stand for the same device.
HostDevice::HostDevice(const HostOptions& options)
    : state_(std::make_shared<State>(options)),
      identity_{state_.get(), NextDeviceTag()},
      legacy_id_(NextStreamId()) {}

// A backend waits for nothing here: handles that are still alive share its state.
HostDevice::~HostDevice() = default;

// A backend wraps the caller's stream instead, and asks the driver for its identity at this time,
// once: a call per copy would cost as much as all of this library's own work. A handle is no
// identity, because the driver gives a destroyed stream's handle to the next one.
Stream HostDevice::NewStream() const noexcept {
  return Stream::ForBackend(nullptr, StreamKind::kOrdinary, NextStreamId(), identity_.device_tag);
}

Stream HostDevice::LegacyStream() const noexcept {
  return Stream::ForBackend(nullptr, StreamKind::kLegacyDefault, 0, identity_.device_tag);
}

Stream HostDevice::PerThreadStream() const noexcept {
  return Stream::ForBackend(nullptr, StreamKind::kPerThreadDefault, 0, identity_.device_tag);
}

// --- Memory -------------------------------------------------------------------------------------

// A backend must not free here to make room when its free waits for the device: it answers
// `kResourceExhausted`, and the user calls `Trim` when a wait does no harm. It also keeps an
// allocation from invalidating another thread's capture (for CUDA: an exchange of the thread's
// capture mode around it, here and in `Query`, `WaitAny` and `Trim`).
Expected<PinnedBuffer> HostDevice::AllocatePinned(uint64_t bytes) {
  if (Expected<void> ok = CheckAllocatePinned(identity_, bytes); !ok) return ErrorOf(ok);
  Expected<std::byte*> data = state_->cache().Take(bytes);
  if (!data) return ErrorOf(data);
  return PinnedBuffer::ForBackend(state_, *data, bytes);
}

Expected<void> HostDevice::Trim() {
  if (Expected<void> ok = CheckProcess(identity_); !ok) return ok;
  state_->cache().Trim();
  return {};
}

// A backend asks the driver, which knows memory that others pinned too, and refuses addresses of
// device memory. Here every address is one of host memory.
Expected<MemoryKind> HostDevice::KindOf(std::span<const std::byte> memory) {
  if (Expected<void> ok = CheckProcess(identity_); !ok) return ErrorOf(ok);
  return state_->cache().Contains(memory) ? MemoryKind::kPinned : MemoryKind::kPageable;
}

uint64_t HostDevice::MemorySpace() const noexcept { return kHostMemorySpace; }

// --- Copies -------------------------------------------------------------------------------------
// A backend makes its device current for the call and restores the thread's own, unless its driver
// takes the device from the stream. A copy that it reports as failed counts as one that may have
// been enqueued.

// `memmove`, because a destination may overlap its source when both are host memory.
Expected<void> HostDevice::CopyAsync(DevicePtr destination, std::span<const std::byte> source,
                                     const Stream& stream) {
  Expected<void> ok = CheckCopyAsync(identity_, destination, source, stream);
  if (ok && !source.empty()) {
    std::memmove(destination.pointer(), source.data(), source.size());
  }
  return ok;
}

// A backend whose driver has no call for a batch makes a copy call for each entry; an error in the
// middle is then the error of all.
Expected<void> HostDevice::CopyBatchAsync(std::span<const CopyEntry> entries,
                                          const Stream& stream) {
  if (Expected<void> ok = CheckCopyBatchAsync(identity_, entries, stream); !ok) return ok;
  for (const CopyEntry& entry : entries) {
    std::memmove(entry.destination.pointer(), entry.source.data(), entry.source.size());
  }
  return {};
}

// --- Events -------------------------------------------------------------------------------------
// What a record stands for has already happened when `Record` is called, so no event is ever
// pending. Nor is an atomic needed for the order that `Query` promises: whoever may use the event
// after its record, or enqueues "after" another call returned, has already been ordered after it by
// his own means (device.h: nothing else uses an event during its record).

Expected<Event> HostDevice::CreateEvent() {
  if (Expected<void> ok = CheckProcess(identity_); !ok) return ErrorOf(ok);
  return Event::ForBackend(state_, kCompleteEvent);
}

// A backend enqueues a mark on the stream. It replaces the event's earlier record for later
// queries, and leaves the streams that wait for that one waiting for it.
Expected<void> HostDevice::Record(Event& event, const Stream& stream) {
  return CheckRecord(identity_, event, stream);
}

// A backend answers the driver's "not ready" with `kPending`, which is no error, and every other
// failure with an error, which is no completion.
Expected<EventState> HostDevice::Query(const Event& event) {
  if (Expected<void> ok = CheckQuery(identity_, event); !ok) return ErrorOf(ok);
  return EventState::kComplete;
}

// A backend looks at each event in the order given, answers the first complete one, and otherwise
// naps and looks again until a bound is reached. It holds no lock meanwhile.
Expected<std::optional<size_t>> HostDevice::WaitAny(std::span<const Event* const> events,
                                                    const WaitBounds& bounds) {
  if (Expected<void> ok = CheckWaitAny(identity_, events); !ok) return ErrorOf(ok);
  if (!events.empty()) return 0;
  WaitForBounds(bounds);
  return std::nullopt;
}

// A backend makes the stream wait for what the event stands for now, not for a later record.
Expected<void> HostDevice::WaitEvent(const Stream& stream, const Event& event) {
  return CheckWaitEvent(identity_, stream, event);
}

// --- State --------------------------------------------------------------------------------------

// A backend asks first whether the stream is being captured, and for the identity only when it is
// not: the second question may invalidate a capture, the first never does.
Expected<StreamStatus> HostDevice::Inspect(const Stream& stream) {
  if (!IsOwnStream(identity_, stream)) return argument_errors::OfInspect(identity_, stream);
  switch (stream.kind()) {
    case StreamKind::kOrdinary:
      return StreamStatus{false, stream.id()};
    case StreamKind::kLegacyDefault:
      return StreamStatus{false, legacy_id_};
    case StreamKind::kPerThreadDefault:
      break;
  }
  return StreamStatus{false, PerThreadStreamId(identity_.device_tag)};
}

// The same for every backend of real hardware; only a simulator has a time of its own.
std::chrono::nanoseconds HostDevice::Now() const noexcept { return SteadyNow(); }

}  // namespace h2d
