// Holds streams: a stream waits for a word of host memory that the test writes.
#ifndef H2D_DEVICE_CUDA_TESTING_STREAM_GATE_H_
#define H2D_DEVICE_CUDA_TESTING_STREAM_GATE_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "h2d/device/cuda/cuda_device.h"
#include "h2d/device/error.h"
#include "h2d/device/stream.h"

namespace h2d::conformance {

// A wait of the stream itself occupies no multiprocessor and no driver thread, so many streams may
// be held at once, and released in any order. Thread-compatible.
class StreamGate {
 public:
  // Holds streams of `device`.
  explicit StreamGate(std::shared_ptr<CudaDevice> device) : device_(std::move(device)) {}
  ~StreamGate() { OpenAll(); }
  StreamGate(const StreamGate&) = delete;
  StreamGate& operator=(const StreamGate&) = delete;

  // What is enqueued on `stream` from now on waits for `Open`.
  Expected<void> Close(const Stream& stream);
  // Errors: the stream is not held.
  Expected<void> Open(const Stream& stream);
  void OpenAll() noexcept;

 private:
  const std::shared_ptr<CudaDevice> device_;
  std::map<CUstream_st*, std::atomic<uint32_t>*> closed_;
};

}  // namespace h2d::conformance

#endif  // H2D_DEVICE_CUDA_TESTING_STREAM_GATE_H_
