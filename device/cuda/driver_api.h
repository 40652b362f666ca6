// The driver's entry points that the backend calls.
//
// Why not the runtime's. They do the same and save its bookkeeping: 1,541 ns against 1,685 ns for a
// 256-byte memcpy, copy and record, measured on an H200. They touch no device but the one meant:
// `cudaSetDevice(0)`, to put a thread's device back, would make a context on device 0 in a process
// that never used it. And they leave nothing behind as the runtime's "last error".
//
// They come from the runtime's own look-up, so nothing links the driver and a program that links
// this starts on a machine without one.
#ifndef H2D_DEVICE_CUDA_DRIVER_API_H_
#define H2D_DEVICE_CUDA_DRIVER_API_H_

#include <cuda.h>
#include <cudaTypedefs.h>

#include "h2d/device/error.h"

namespace h2d::internal {

// Each call by its name without `cu`, and the version of its signature.
#define H2D_DRIVER_CALLS(X)         \
  X(CtxGetCurrent, 4000)            \
  X(CtxPopCurrent, 4000)            \
  X(CtxPushCurrent, 4000)           \
  X(DeviceGet, 2000)                \
  X(DeviceGetName, 2000)            \
  X(DevicePrimaryCtxRelease, 11000) \
  X(DevicePrimaryCtxRetain, 7000)   \
  X(EventCreate, 2000)              \
  X(EventDestroy, 4000)             \
  X(EventQuery, 2000)               \
  X(EventRecord, 2000)              \
  X(MemFreeHost, 2000)              \
  X(MemHostAlloc, 2020)             \
  X(MemcpyHtoDAsync, 3020)          \
  X(PointerGetAttributes, 7000)     \
  X(StreamGetCtx, 12050)            \
  X(StreamGetDevice, 12080)         \
  X(StreamGetId, 12000)             \
  X(StreamIsCapturing, 10000)       \
  X(StreamWaitEvent, 3020)          \
  X(ThreadExchangeStreamCaptureMode, 10010)

struct DriverApi {
#define H2D_DECLARE(name, version) PFN_cu##name##_v##version name = nullptr;
  H2D_DRIVER_CALLS(H2D_DECLARE)
#undef H2D_DECLARE

  // Null when the toolkit or the driver is older than 13.0, whose signature this is.
#if CUDA_VERSION >= 13000
  PFN_cuMemcpyBatchAsync_v13000 MemcpyBatchAsync = nullptr;
#endif
};

// Checks that the machine has a driver that is new enough and the device `ordinal`, and looks the
// entry points up; the table lives as long as the process. The first call is the first to touch the
// driver; it makes no context. Errors: whole sentences that say what is missing.
[[nodiscard]] Expected<const DriverApi*> LoadDriverApi(int ordinal);

}  // namespace h2d::internal

#endif  // H2D_DEVICE_CUDA_DRIVER_API_H_
