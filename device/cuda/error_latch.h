// Remembers the error that ended a device.
#ifndef H2D_DEVICE_CUDA_ERROR_LATCH_H_
#define H2D_DEVICE_CUDA_ERROR_LATCH_H_

#include "h2d/device/error.h"
#include "h2d/device/sync.h"

namespace h2d::internal {

// After a sticky error every call of the driver returns it, also calls that have nothing to do with
// it. The latch keeps the first report, which is the closest to the cause, and later calls answer
// with that instead of asking the driver again. Thread-safe; never opens again.
class ErrorLatch {
 public:
  // One load.
  bool closed() const noexcept { return closed_.Load(); }

  // Keeps `first` when nothing is kept yet.
  void Close(const Error& first) {
    const MutexLock lock(mutex_);
    if (closed_.Load()) return;
    first_ = first;
    closed_.Store(true);
  }

  // The first cause, as the error of a call made after it. REQUIRES: `closed()`.
  Unexpected Failure() const {
    const MutexLock lock(mutex_);
    return MakeError(
        ErrorCode::kDevice,
        "The device failed earlier and cannot be used any more in this process: " + first_.message,
        first_.device_code);
  }

 private:
  mutable Mutex mutex_;
  Atomic<bool> closed_ = false;
  Error first_ H2D_GUARDED_BY(mutex_);
};

}  // namespace h2d::internal

#endif  // H2D_DEVICE_CUDA_ERROR_LATCH_H_
