// A driver that a test plays: what it is asked, and what it answers. Needs no GPU.
#ifndef H2D_DEVICE_CUDA_TESTING_PLAYED_DRIVER_H_
#define H2D_DEVICE_CUDA_TESTING_PLAYED_DRIVER_H_

#include <cuda.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "h2d/device/cuda/driver_api.h"

namespace h2d::internal {

// For one test at a time, on one thread. Whatever it has no answer for succeeds.
class PlayedDriver {
 public:
  // The primary context of the device that it plays.
  static inline const CUcontext kPrimary = reinterpret_cast<CUcontext>(uintptr_t{0x10});

  PlayedDriver();
  // Frees the pinned memory that nobody freed.
  ~PlayedDriver();
  PlayedDriver(const PlayedDriver&) = delete;
  PlayedDriver& operator=(const PlayedDriver&) = delete;

  const DriverApi& api() const { return api_; }

  // The names of the calls since the last question, without `cu`.
  std::vector<std::string> TakeCalls() { return std::exchange(calls_, {}); }

  // What the call of that name answers from now on.
  void Answer(const std::string& name, CUresult result) { answers_[name] = result; }

  // The thread's, as the driver keeps them.
  CUcontext current = kPrimary;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

  // Of every stream.
  CUstreamCaptureStatus capture_status = CU_STREAM_CAPTURE_STATUS_NONE;
  CUcontext stream_context = kPrimary;
  CUdevice stream_device = 0;

  // Of every address, as it is asked for in `PointerGetAttributes`; 0 when nothing is said of it.
  std::map<CUpointer_attribute, uint64_t> attributes;

  // The blocks that are allocated and not freed.
  std::set<void*> pinned;

 private:
  static CUresult Called(const char* name);
  void PlayContexts();
  void PlayStreams();
  void PlayEvents();
  void PlayMemory();

  static inline PlayedDriver* played_ = nullptr;

  DriverApi api_;
  std::vector<std::string> calls_;
  std::map<std::string, CUresult> answers_;
};

}  // namespace h2d::internal

#endif  // H2D_DEVICE_CUDA_TESTING_PLAYED_DRIVER_H_
