// Makes calls that a stream capture forbids harmless to it, for a scope.
#ifndef H2D_DEVICE_CUDA_CAPTURE_GUARD_H_
#define H2D_DEVICE_CUDA_CAPTURE_GUARD_H_

#include "h2d/device/cuda/driver_api.h"

namespace h2d::internal {

// While any thread captures in Global mode, an event query, a host allocation or a free from a
// thread in Global mode (every thread's default) fails and invalidates that capture; PyTorch
// captures so. In Relaxed mode these calls succeed and the captures end well, also on the capturing
// thread itself (measured on an H200). A guard is a pair of exchanges, 90 to 150 ns: it stands
// around those calls only, once around a sweep of queries. Copies, records, waits and is-capturing
// need none.
class CaptureGuard {
 public:
  explicit CaptureGuard(const DriverApi& api) noexcept : api_(api) {
    static_cast<void>(api_.ThreadExchangeStreamCaptureMode(&mode_));
  }
  ~CaptureGuard() { static_cast<void>(api_.ThreadExchangeStreamCaptureMode(&mode_)); }
  CaptureGuard(const CaptureGuard&) = delete;
  CaptureGuard& operator=(const CaptureGuard&) = delete;

 private:
  const DriverApi& api_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;  // afterwards the thread's own
};

}  // namespace h2d::internal

#endif  // H2D_DEVICE_CUDA_CAPTURE_GUARD_H_
