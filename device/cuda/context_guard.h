// The device that a thread's calls mean, for a scope.
#ifndef H2D_DEVICE_CUDA_CONTEXT_GUARD_H_
#define H2D_DEVICE_CUDA_CONTEXT_GUARD_H_

#include "h2d/device/cuda/driver_api.h"

namespace h2d::internal {

// Makes `context` current and, at the end of the scope, what was current before. When it is current
// already, the usual case, that costs one look. Events, allocations and the two default streams
// belong to the current context; calls that name an ordinary stream or an event do not depend on
// it.
class ContextGuard {
 public:
  ContextGuard(const DriverApi& api, CUcontext context) noexcept : api_(api) {
    CUcontext current = nullptr;
    if (api_.CtxGetCurrent(&current) == CUDA_SUCCESS && current == context) return;
    result_ = api_.CtxPushCurrent(context);
    pushed_ = result_ == CUDA_SUCCESS;
  }
  ~ContextGuard() {
    CUcontext popped = nullptr;
    if (pushed_) static_cast<void>(api_.CtxPopCurrent(&popped));
  }
  ContextGuard(const ContextGuard&) = delete;
  ContextGuard& operator=(const ContextGuard&) = delete;

  // Why the context is not current, or success.
  CUresult result() const noexcept { return result_; }

 private:
  const DriverApi& api_;
  CUresult result_ = CUDA_SUCCESS;
  bool pushed_ = false;
};

}  // namespace h2d::internal

#endif  // H2D_DEVICE_CUDA_CONTEXT_GUARD_H_
