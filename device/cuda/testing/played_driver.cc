#include "h2d/device/cuda/testing/played_driver.h"

#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace h2d::internal {

PlayedDriver::PlayedDriver() {
  played_ = this;
  PlayContexts();
  PlayStreams();
  PlayEvents();
  PlayMemory();
}

PlayedDriver::~PlayedDriver() {
  for (void* data : pinned) std::free(data);
  played_ = nullptr;
}

CUresult PlayedDriver::Called(const char* name) {
  played_->calls_.emplace_back(name);
  const auto found = played_->answers_.find(name);
  return found == played_->answers_.end() ? CUDA_SUCCESS : found->second;
}

void PlayedDriver::PlayContexts() {
  api_.CtxGetCurrent = [](CUcontext* context) {
    *context = played_->current;
    return Called("CtxGetCurrent");
  };
  api_.CtxPushCurrent = [](CUcontext context) {
    played_->current = context;
    return Called("CtxPushCurrent");
  };
  api_.CtxPopCurrent = [](CUcontext* context) {
    *context = std::exchange(played_->current, nullptr);
    return Called("CtxPopCurrent");
  };
  api_.DevicePrimaryCtxRelease = [](CUdevice) { return Called("DevicePrimaryCtxRelease"); };
  api_.ThreadExchangeStreamCaptureMode = [](CUstreamCaptureMode* mode) {
    std::swap(*mode, played_->mode);
    return Called("ThreadExchangeStreamCaptureMode");
  };
}

void PlayedDriver::PlayStreams() {
  api_.StreamIsCapturing = [](CUstream, CUstreamCaptureStatus* status) {
    *status = played_->capture_status;
    return Called("StreamIsCapturing");
  };
  api_.StreamGetDevice = [](CUstream, CUdevice* device) {
    *device = played_->stream_device;
    return Called("StreamGetDevice");
  };
  api_.StreamGetCtx = [](CUstream, CUcontext* context, CUgreenCtx*) {
    *context = played_->stream_context;
    return Called("StreamGetCtx");
  };
  api_.StreamGetId = [](CUstream, unsigned long long* id) {
    *id = 7;
    return Called("StreamGetId");
  };
  api_.StreamWaitEvent = [](CUstream, CUevent, unsigned) { return Called("StreamWaitEvent"); };
}

void PlayedDriver::PlayEvents() {
  api_.EventCreate = [](CUevent* event, unsigned) {
    *event = reinterpret_cast<CUevent>(uintptr_t{0x20});
    return Called("EventCreate");
  };
  api_.EventDestroy = [](CUevent) { return Called("EventDestroy"); };
  api_.EventQuery = [](CUevent) { return Called("EventQuery"); };
  api_.EventRecord = [](CUevent, CUstream) { return Called("EventRecord"); };
}

void PlayedDriver::PlayMemory() {
  api_.MemHostAlloc = [](void** data, size_t bytes, unsigned) {
    const CUresult result = Called("MemHostAlloc");
    if (result == CUDA_SUCCESS) played_->pinned.insert(*data = std::malloc(bytes));
    return result;
  };
  api_.MemFreeHost = [](void* data) {
    const CUresult result = Called("MemFreeHost");
    if (result != CUDA_SUCCESS) return result;
    if (played_->pinned.erase(data) == 0) return CUDA_ERROR_INVALID_VALUE;
    std::free(data);
    return CUDA_SUCCESS;
  };
  api_.MemcpyHtoDAsync = [](CUdeviceptr, const void*, size_t, CUstream) {
    return Called("MemcpyHtoDAsync");
  };
  api_.PointerGetAttributes = [](unsigned count, CUpointer_attribute* asked, void** values,
                                 CUdeviceptr) {
    for (unsigned i = 0; i < count; ++i) {
      const uint64_t value = played_->attributes[asked[i]];
      const bool wide = asked[i] == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR ||
                        asked[i] == CU_POINTER_ATTRIBUTE_RANGE_SIZE;
      std::memcpy(values[i], &value, wide ? sizeof(uint64_t) : sizeof(unsigned));
    }
    return Called("PointerGetAttributes");
  };
}

}  // namespace h2d::internal
