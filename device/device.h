// The device, as the stager sees it: an abstract interface with about a dozen methods.
//
// What it is for. Everything above this header is pure host logic that runs unchanged on CUDA
// (`device/cuda`), on a simulator that finds races (`device/fake`) and on plain host memory
// (`device/host`). A new backend is cloned from `device/host` and passes `device/conformance`.
//
// Thread-safety. Any number of threads may call any methods of one device at once, whatever the
// calling thread's current device is; that current device is the same after the call as before.
// Two calls on one stream are enqueued in some order; when one returned before the other began, in
// that order. An `Event` may be queried and waited for by many threads while none records it.
//
// Ownership. Devices are held by `std::shared_ptr`. Handles made by a device share what they need
// of it and may outlive it. A `Stream` is a name; the stream is the caller's.
//
// Units. Sizes are bytes, addresses are byte addresses, times are nanoseconds.
//
// Errors. A method that returns an error has not done what it says, except where it says otherwise:
// a failed enqueue must be taken for one that may have been enqueued, because devices report errors
// of earlier asynchronous work from later calls. An error of the device is `kDevice` with the
// device's own number; it is never a completion. After a sticky error (an illegal address) every
// call fails with it. In a forked child every call is `kFailedPrecondition`.
//
// Memory ordering. A call that learns of a completion (`WaitAny`, `Query` with `kComplete`)
// acquires: everything that the stream did before the record happens before the call's return, and
// so does everything that the recording thread did before it called `Record`. A pending answer
// orders nothing. An enqueue releases: what the calling thread wrote before it is what the device
// reads after it.
//
// Capture. No method invalidates any capture, of its own thread or of another, in any capture mode.
// Enqueues on a capturing stream would be recorded into its graph: ask `Inspect` first; the stager
// does, and refuses. REQUIRES, for every method that takes a stream: nobody begins a capture of
// that stream, or makes it join one, during the call.
#ifndef H2D_DEVICE_DEVICE_H_
#define H2D_DEVICE_DEVICE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "h2d/device/device_ptr.h"
#include "h2d/device/error.h"
#include "h2d/device/event.h"
#include "h2d/device/memory_kind.h"
#include "h2d/device/pinned_buffer.h"
#include "h2d/device/stream.h"
#include "h2d/device/sync.h"

namespace h2d {

// One copy of a batch: all of `source` to `destination`.
struct CopyEntry {
  DevicePtr destination;
  std::span<const std::byte> source;
};

// How long `WaitAny` waits: until an event is complete, `timeout` has passed (0 or less: one look
// and no wait), or, when `wakeup` is given, its epoch is no longer `seen`.
struct WaitBounds {
  std::chrono::nanoseconds timeout{0};
  const Wakeup* wakeup = nullptr;
  uint64_t seen = 0;
};

// How the host touches pinned memory.
enum class HostAccess : uint8_t { kRead, kWrite };

class Device {
 public:
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // --- Memory -----------------------------------------------------------------------------------

  // Page-locked memory of `bytes` bytes, from the device's cache or from the driver. Its content is
  // arbitrary. The driver takes 34 us for 64 KiB and 0.84 ms for 1 MiB, whether the device is busy
  // or not; it never waits for the device.
  // Errors: `bytes` is 0 (`kInvalidArgument`); the machine has no more (`kResourceExhausted`).
  [[nodiscard]] virtual Expected<PinnedBuffer> AllocatePinned(uint64_t bytes) = 0;

  // Frees the pinned memory in the device's cache. May wait until everything that was enqueued on
  // the device, by anyone, has completed: not for a step's path. Memory in use is not touched.
  [[nodiscard]] virtual Expected<void> Trim() = 0;

  // What kind of host memory `memory` lies in: `kPinned` when one pinned allocation, or one
  // registration, holds all of it, wherever inside it begins; otherwise `kPageable`, also when it
  // is empty or pinned in part. A mapping of a file cannot be told from other pageable memory.
  // Errors: `kInvalidArgument` when `memory` begins in device memory.
  [[nodiscard]] virtual Expected<MemoryKind> KindOf(std::span<const std::byte> memory) = 0;

  // Names the space that this device's addresses belong to: two devices with equal names address
  // the same memory with the same numbers. Constant. Never fails.
  virtual uint64_t MemorySpace() const noexcept = 0;

  // --- Copies -----------------------------------------------------------------------------------

  // Enqueues one copy of `source` to `destination` on `stream` and returns; 0 bytes do nothing and
  // succeed. A pinned source is read at any time between the start of this call and the copy's
  // completion, in any order and in pieces: it stays valid and unwritten until then, also when this
  // call fails. A pageable source may be read during the call or as late as a pinned one.
  // The call may block until the stream reaches the copy; it usually takes 1.4 us.
  // Errors: a null destination or a range outside its allocation, a stream of another device
  // (`kInvalidArgument`).
  [[nodiscard]] virtual Expected<void> CopyAsync(DevicePtr destination,
                                                 std::span<const std::byte> source,
                                                 const Stream& stream) = 0;

  // Enqueues all of `entries` in one call, with the sources read in stream order, as in
  // `CopyAsync`. The copies of one batch are unordered among themselves. Not for the legacy default
  // stream. Errors as in `CopyAsync`, for the batch as a whole; also an empty batch or an empty
  // entry (`kInvalidArgument`).
  [[nodiscard]] virtual Expected<void> CopyBatchAsync(std::span<const CopyEntry> entries,
                                                      const Stream& stream) = 0;

  // --- Events -----------------------------------------------------------------------------------

  // An event that was never recorded.
  [[nodiscard]] virtual Expected<Event> CreateEvent() = 0;

  // Makes `event` stand for all work enqueued on `stream` before this call; work enqueued later
  // does not move it. A record replaces an earlier one for later queries; who waits already keeps
  // what he waits for. When it fails, the event may stand for either. REQUIRES: no other call uses
  // `event` meanwhile.
  [[nodiscard]] virtual Expected<void> Record(Event& event, const Stream& stream) = 0;

  // Whether the work that `event` stands for is complete. An event that was never recorded counts
  // as complete: whoever depends on a record remembers that it succeeded.
  [[nodiscard]] virtual Expected<EventState> Query(const Event& event) = 0;

  // Waits for any of `events` and answers the index of one that is complete, or nothing when the
  // wait ended without one (see `WaitBounds`). With a `timeout` of 0 it looks at each event once,
  // in the order given, and answers the first that is complete. `events` may be empty: then only
  // the bounds end the wait. Holds no lock while it waits.
  // Errors: the device's, for any of the events.
  [[nodiscard]] virtual Expected<std::optional<size_t>> WaitAny(
      std::span<const Event* const> events, const WaitBounds& bounds) = 0;

  // Makes work enqueued on `stream` after this call wait for what `event` stands for now; a later
  // record of the event changes nothing for it. The host does not wait. An event that was never
  // recorded is no wait.
  [[nodiscard]] virtual Expected<void> WaitEvent(const Stream& stream, const Event& event) = 0;

  // --- State ------------------------------------------------------------------------------------

  // Whether `stream` is being captured and, when it is not, its identity for the calling thread.
  // Never disturbs a capture. Errors: a stream of another device (`kInvalidArgument`).
  [[nodiscard]] virtual Expected<StreamStatus> Inspect(const Stream& stream) = 0;

  // The clock that this device's waits are bounded by, from an arbitrary start: the machine's
  // steady clock, or a simulator's virtual time. Never fails, never goes back.
  virtual std::chrono::nanoseconds Now() const noexcept = 0;

  // The library tells the device, before the access, of its own host accesses to pinned memory.
  // Hardware backends do nothing; a simulator checks them against the copies in flight.
  virtual void OnHostAccess(std::span<const std::byte> bytes, HostAccess access) noexcept {
    static_cast<void>(bytes);
    static_cast<void>(access);
  }

 protected:
  Device() = default;
};

}  // namespace h2d

#endif  // H2D_DEVICE_DEVICE_H_
