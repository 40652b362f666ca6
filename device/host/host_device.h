// Plain host memory as a device: the fallback where there is no GPU.
//
// `HostDevice` does what `Device` promises with the simplest means: a destination is ordinary host
// memory, every copy and batch is complete when its call returns, streams are mere names, an event
// has nothing to wait for. Programs written against `Device` run on it unchanged. It finds no
// races, because nothing on it is ever late: the simulator (`device/fake`) is for that.
//
//   std::shared_ptr<HostDevice> device = HostDevice::Create();
//   const Stream stream = device->NewStream();
//   std::vector<int32_t> slab(64);  // the "device memory" of a test or of a CPU engine
//   Destination::Of(slab.data(), slab.size());
//
// It is also the skeleton that a new backend is cloned from (docs/adding_a_backend.md): its source
// says at each place what a backend of real hardware does there. And it is the zero of the overhead
// benchmarks: `CopyAsync`, `Record`, `Query` and `Inspect` cost a few nanoseconds and take no lock.
//
// Thread-safety, errors and ordering are as in device.h. Its own rules:
// - A destination must be writable memory of this process; nobody can check that here.
// - Two threads that copy to overlapping destinations at once race, as two streams would.
// - `WaitEvent` and `Record` order nothing that the order of the calls has not ordered.
// - No stream is ever captured.
#ifndef H2D_DEVICE_HOST_HOST_DEVICE_H_
#define H2D_DEVICE_HOST_HOST_DEVICE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "h2d/device/argument_checks.h"
#include "h2d/device/device.h"

namespace h2d {

struct HostOptions {
  // The most that `AllocatePinned` holds at once, in use and in the cache together. Beyond it the
  // cache gives way first, then calls fail with `kResourceExhausted`.
  uint64_t max_pinned_bytes = uint64_t{1} << 30;
};

class HostDevice final : public Device {
 public:
  // Never null. Devices are independent of each other, but for the memory that they address.
  static std::shared_ptr<HostDevice> Create(HostOptions options = {});
  ~HostDevice() override;

  // A name no stream of this process had before. It needs no destruction.
  Stream NewStream() const noexcept;
  Stream LegacyStream() const noexcept;
  Stream PerThreadStream() const noexcept;

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

 private:
  class State;  // what the handles share, and what outlives the device with them

  explicit HostDevice(const HostOptions& options);

  const std::shared_ptr<State> state_;
  const DeviceIdentity identity_;
  const StreamId legacy_id_;
};

}  // namespace h2d

#endif  // H2D_DEVICE_HOST_HOST_DEVICE_H_
