// Streams of a CUDA device, and waiting for them.
#ifndef H2D_DEVICE_CUDA_ENGINE_CUDA_STREAM_H_
#define H2D_DEVICE_CUDA_ENGINE_CUDA_STREAM_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "h2d/device/cuda/cuda_device.h"
#include "h2d/device/error.h"
#include "h2d/device/stream.h"

namespace h2d {

// Whether a stream and the legacy default stream wait for each other.
enum class CudaStreamKind : uint8_t { kNonBlocking, kBlocking };

// Owns a stream; move-only. Its end does not wait: work that was enqueued is still done. It may
// outlive its `CudaDevice`; in a forked child and at exit it is quiet.
class CudaStream {
 public:
  // Leaves captures alone.
  [[nodiscard]] static Expected<CudaStream> Create(
      const CudaDevice& device, CudaStreamKind kind = CudaStreamKind::kNonBlocking);

  // The stream as the library knows it. REQUIRES: not moved from.
  const Stream& get() const noexcept { return stream_; }
  CUstream_st* native() const noexcept { return native_.get(); }

 private:
  struct Destroy {
    std::shared_ptr<internal::CudaState> state;
    void operator()(CUstream_st* stream) const noexcept;
  };
  using Owned = std::unique_ptr<CUstream_st, Destroy>;

  CudaStream(Owned native, const Stream& stream) noexcept
      : native_(std::move(native)), stream_(stream) {}

  Owned native_;
  Stream stream_;
};

// The host waits until all work on `stream`, which belongs to `device`, is complete. Errors: the
// device's, of any of that work; a stream that is being captured, whose capture that invalidates.
[[nodiscard]] Expected<void> Synchronize(const CudaDevice& device, const Stream& stream);

// ... all work on the device. Invalidates every capture that is not in Relaxed mode.
[[nodiscard]] Expected<void> SynchronizeDevice(const CudaDevice& device);

}  // namespace h2d

#endif  // H2D_DEVICE_CUDA_ENGINE_CUDA_STREAM_H_
