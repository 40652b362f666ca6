// A CUDA GPU as a `Device`: the runtime's primary context, its streams, events and pinned memory.
//
//   auto device = h2d::CudaDevice::Create(0);
//   auto stream = (*device)->Wrap(cuda_stream);
//   auto stager = h2d::PinnedStager::Create(*device);
//
// The header includes no CUDA header: `CUstream_st*` is `cudaStream_t`, and also `CUstream`. The
// library links the runtime statically and the driver not at all, so a program starts on a machine
// without a GPU, where `Create` says what is missing. Nothing touches the driver before `Create`.
//
// What it costs, beside the driver's own calls: a copy, a record, a stream wait and `Inspect` of an
// ordinary stream are one driver call each. A query, a sweep of `WaitAny` and an allocation from
// the driver stand inside one exchange of the thread's capture mode, so that they leave captures
// alone (I7). `docs/cuda_semantics.md` says what CUDA does and what of it is relied on.
#ifndef H2D_DEVICE_CUDA_CUDA_DEVICE_H_
#define H2D_DEVICE_CUDA_CUDA_DEVICE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "h2d/device/argument_checks.h"
#include "h2d/device/device.h"

struct CUstream_st;

namespace h2d {

namespace internal {
class CudaState;
}

struct CudaDeviceOptions {
  // How many bytes of pinned memory the device may own at once, in use and cached together.
  // `AllocatePinned` answers `kResourceExhausted` beyond it; `Trim` gives the cached part back.
  uint64_t max_pinned_bytes = uint64_t{16} << 30;
};

// Thread-safety, errors and memory ordering are those of `Device`. Any thread may call, whatever
// its current device is and also when it has none; it is the same afterwards.
//
// Pinned memory. Freed memory goes to the device's cache. The driver gets it back from `Trim`, and
// when the device and all its handles are gone; both may wait for all work on the device.
//
// Lifetime. The device holds its primary context; resetting the device under it (cudaDeviceReset)
// is not survived. At exit the driver may be gone before a device with static storage duration:
// its destructor, and those of its handles, are then quiet. Devices made of one ordinal share its
// streams; events and pinned memory are each one's own.
class CudaDevice final : public Device {
 public:
  // Opens the device that CUDA numbers `ordinal`. Makes its primary context when there is none yet,
  // and no other device's.
  // Errors: no driver, a driver older than the program's CUDA, no GPU (`kFailedPrecondition`); no
  // such ordinal (`kInvalidArgument`); the driver's.
  [[nodiscard]] static Expected<std::shared_ptr<CudaDevice>> Create(
      int ordinal, const CudaDeviceOptions& options = {});

  ~CudaDevice() override;

  // Names a stream that was created on this device; resolves its identity, so wrap once and keep
  // the result. A destroyed stream's handle comes back for another stream: wrap that one anew.
  // Errors: a null, legacy or per-thread handle, a stream of another device or of another context
  // than the device's primary one (`kInvalidArgument`); a stream that is being captured, whose
  // identity cannot be asked for (`kFailedPrecondition`).
  [[nodiscard]] Expected<Stream> Wrap(CUstream_st* stream) const;

  // The device's legacy default stream, and the calling thread's own default stream on it: each
  // explicit, whatever the program was compiled to mean by a null handle.
  Stream LegacyStream() const noexcept;
  Stream PerThreadStream() const noexcept;

  // The `cudaStream_t` of a stream of this backend. For the default streams it is the handle that
  // means them on the device that is current at its use.
  static CUstream_st* Native(const Stream& stream) noexcept {
    return static_cast<CUstream_st*>(stream.handle());
  }

  int ordinal() const noexcept;
  // As the vendor calls it: "NVIDIA H200". Empty when the driver does not tell.
  std::string name() const;

  // For the targets of `device/cuda`: a device over `state`, and back.
  explicit CudaDevice(std::shared_ptr<internal::CudaState> state) noexcept;
  const std::shared_ptr<internal::CudaState>& state() const noexcept { return state_; }

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
  const std::shared_ptr<internal::CudaState> state_;
  const DeviceIdentity identity_;
};

}  // namespace h2d

#endif  // H2D_DEVICE_CUDA_CUDA_DEVICE_H_
