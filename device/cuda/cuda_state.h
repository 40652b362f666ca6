// What a CUDA device and its handles share, and what outlives the device for their sake.
#ifndef H2D_DEVICE_CUDA_CUDA_STATE_H_
#define H2D_DEVICE_CUDA_CUDA_STATE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "h2d/device/cuda/context_guard.h"
#include "h2d/device/cuda/driver_api.h"
#include "h2d/device/cuda/error_latch.h"
#include "h2d/device/cuda/pinned_cache.h"
#include "h2d/device/error.h"
#include "h2d/device/handle_owner.h"
#include "h2d/device/stream.h"

namespace h2d::internal {

// Holds the device's primary context, the one that the runtime uses, for as long as the device or
// any handle lives. Thread-safe.
class CudaState final : public HandleOwner {
 public:
  static Expected<std::shared_ptr<CudaState>> Create(int ordinal, uint64_t max_pinned_bytes);

  CudaState(const DriverApi& api, int ordinal, CUdevice device, CUcontext context,
            uint64_t max_pinned_bytes);
  // Frees the idle pinned memory, unless the device has failed or the driver is unloading.
  ~CudaState() override;

  // Quiet, whatever the driver says: at exit it may be gone already.
  void DestroyEvent(uint64_t raw) noexcept override;
  void ReleasePinned(std::byte* data, uint64_t bytes) noexcept override;

  const DriverApi& api() const noexcept { return api_; }
  int ordinal() const noexcept { return ordinal_; }
  CUdevice device() const noexcept { return device_; }
  CUcontext context() const noexcept { return context_; }
  uint64_t device_tag() const noexcept { return device_tag_; }
  const ErrorLatch& latch() const noexcept { return latch_; }

  // Makes a driver call that depends on no particular context, only on there being one: a thread
  // that never used CUDA has none, and then the first try has done nothing.
  template <class Call>
  CUresult InAnyContext(const Call& call) const noexcept {
    const CUresult result = call();
    if (result != CUDA_ERROR_INVALID_CONTEXT && result != CUDA_ERROR_CONTEXT_IS_DESTROYED)
        [[likely]] {
      return result;
    }
    return InOwnContext(call);
  }

  // Makes a driver call that means the current device.
  template <class Call>
  CUresult InOwnContext(const Call& call) const noexcept {
    const ContextGuard guard(api_, context_);
    return guard.result() == CUDA_SUCCESS ? call() : guard.result();
  }

  // Makes a driver call that names `stream`; the two default streams are the current device's.
  template <class Call>
  CUresult OnStream(const Stream& stream, const Call& call) const noexcept {
    return stream.kind() == StreamKind::kOrdinary ? InAnyContext(call) : InOwnContext(call);
  }

  // The error of a driver call, as the caller gets it. A sticky one closes the latch.
  Unexpected Failure(CUresult result, std::string_view attempt);

  // Pinned memory of at least `bytes` (not 0) bytes, from the cache or from the driver.
  Expected<std::byte*> TakePinned(uint64_t bytes);

  // Gives the idle pinned memory back to the driver; may wait for the whole device. Blocks that the
  // driver does not take back stay in the cache, idle and counted, for a later try.
  Expected<void> FreeIdle();

 private:
  CUresult FreePinned(std::byte* block) const noexcept;
  Unexpected NoMorePinned(uint64_t bytes) const;

  const DriverApi& api_;
  const int ordinal_;
  const CUdevice device_;
  const CUcontext context_;
  const uint64_t device_tag_;
  ErrorLatch latch_;
  PinnedCache pinned_;
};

}  // namespace h2d::internal

#endif  // H2D_DEVICE_CUDA_CUDA_STATE_H_
