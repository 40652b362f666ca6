// A device whose calls fail when they are told to: a decorator over any other device.
//
// Fault model.
// - A fault names a kind of call and a number N, counted from 1 since this device was made. That
//   call fails once, or it and all later ones of its kind do, or the device is lost: from then on
//   every call of every kind answers this first error, as after an illegal address on CUDA.
// - A fault strikes before the call (the device is never called, so nothing was issued) or after it
//   (the device was called, what it did stays done, and only its answer is replaced). The second is
//   the harder one: a copy that "failed" is in flight and reads its source; an event whose record
//   "failed" stands for the new work. A buffer or event that was made and not answered goes back.
// - Errors of earlier asynchronous work that a later call reports, as CUDA allows, are a fault of
//   that later call: copy N succeeds and the query after it fails.
// - A slow or blocking call is a hook: it runs on the calling thread before the call, for as long
//   as it likes. It may also inject the fault that this very call meets.
// - What cannot fail is passed on untouched: `MemorySpace`, `Now`, `OnHostAccess`, and the end of
//   handles, which belong to the device inside.
// - It invents no wrong answers: no lost copies, no torn bytes, no late completions. For those
//   there is the simulator; this decorator goes around it as it does around hardware.
//
//   auto faulty = FaultyDevice::Create(inner);
//   faulty->Inject({.kind = CallKind::kCopyAsync, .call = 2, .timing = FaultTiming::kAfterCall});
//   faulty->Inject(OutOfMemory(/*call=*/3));
//
// To prove that a piece of code survives a failure of any call, inject `call = 1`, then 2, and so
// on, each on a new device, until a run ends with `FaultCount() == 0`.
#ifndef H2D_DEVICE_FAULTY_FAULTY_DEVICE_H_
#define H2D_DEVICE_FAULTY_FAULTY_DEVICE_H_

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "h2d/device/device.h"
#include "h2d/device/faulty/fault.h"
#include "h2d/device/process.h"

namespace h2d {

// Thread-safe. Streams are those of the device inside. In a forked child no fault strikes, and the
// device inside refuses the calls itself.
class FaultyDevice final : public Device {
 public:
  // Called with the call's number within its kind.
  using Hook = std::function<void(uint64_t call)>;

  // Shares `inner`. Null when `inner` is null.
  static std::shared_ptr<FaultyDevice> Create(std::shared_ptr<Device> inner);

  // Adds a fault. When several strike one call, the one injected first does.
  void Inject(Fault fault);
  // Forgets every fault, a lost device included; counts go on.
  void ClearFaults();
  // Runs `hook` before every call of `kind`, outside any lock; an empty one removes it. Hooks run
  // on as many threads as call.
  void SetHook(CallKind kind, Hook hook);

  // The calls of `kind` so far, failed ones included.
  uint64_t CallCount(CallKind kind) const;
  // The calls that a fault was answered to.
  uint64_t FaultCount() const;

  [[nodiscard]] Expected<PinnedBuffer> AllocatePinned(uint64_t bytes) override;
  [[nodiscard]] Expected<void> Trim() override;
  [[nodiscard]] Expected<MemoryKind> KindOf(std::span<const std::byte> memory) override;
  uint64_t MemorySpace() const noexcept override;

  [[nodiscard]] Expected<void> CopyAsync(DevicePtr destination, std::span<const std::byte> source,
                                         const Stream& stream) override;
  [[nodiscard]] Expected<void> CopyBatchAsync(std::span<const CopyEntry> entries,
                                              const Stream& stream) override;

  [[nodiscard]] Expected<Event> CreateEvent() override;
  [[nodiscard]] Expected<void> Record(Event& event, const Stream& stream) override;
  [[nodiscard]] Expected<EventState> Query(const Event& event) override;
  [[nodiscard]] Expected<std::optional<size_t>> WaitAny(std::span<const Event* const> events,
                                                        const WaitBounds& bounds) override;
  [[nodiscard]] Expected<void> WaitEvent(const Stream& stream, const Event& event) override;

  [[nodiscard]] Expected<StreamStatus> Inspect(const Stream& stream) override;
  std::chrono::nanoseconds Now() const noexcept override;
  void OnHostAccess(std::span<const std::byte> bytes, HostAccess access) noexcept override;

 private:
  // The fault that strikes a call, if one does.
  struct Strike {
    FaultTiming timing;
    Error error;
  };

  explicit FaultyDevice(std::shared_ptr<Device> inner) noexcept;

  // Counts the call, runs its hook, and says what strikes it.
  std::optional<Strike> Begin(CallKind kind);
  std::optional<Strike> FindStrike(CallKind kind, uint64_t call);
  // Does `call` to the device inside unless a fault strikes before it.
  template <class Call>
  auto Through(CallKind kind, const Call& call) -> decltype(call());

  const std::shared_ptr<Device> inner_;
  const ProcessEpoch process_ = CurrentProcess();

  // Not the mutex of sync.h: to a simulator of host threads that would be an edge between all
  // callers, and hide their races. It is never held while the device inside or a hook is called.
  mutable std::mutex mutex_;
  std::vector<Fault> faults_;          // guarded by mutex_, as all below
  std::optional<Error> sticky_error_;  // the device is lost
  std::array<uint64_t, kCallKinds.size()> call_counts_{};
  std::array<Hook, kCallKinds.size()> hooks_;
  uint64_t fault_count_ = 0;
};

}  // namespace h2d

#endif  // H2D_DEVICE_FAULTY_FAULTY_DEVICE_H_
