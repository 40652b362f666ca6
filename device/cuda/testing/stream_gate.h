// Holds streams: a stream waits for a word of host memory that the test writes.
#ifndef H2D_DEVICE_CUDA_TESTING_STREAM_GATE_H_
#define H2D_DEVICE_CUDA_TESTING_STREAM_GATE_H_

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <map>

#include "h2d/device/error.h"

namespace h2d::conformance {

// A wait of the stream itself occupies no multiprocessor and no driver thread, so many streams may
// be held at once, and released in any order. Thread-compatible.
class StreamGate {
 public:
  StreamGate() = default;
  ~StreamGate() { OpenAll(); }
  StreamGate(const StreamGate&) = delete;
  StreamGate& operator=(const StreamGate&) = delete;

  // What is enqueued on `stream` from now on waits for `Open`.
  Expected<void> Close(cudaStream_t stream);
  // Errors: the stream is not held.
  Expected<void> Open(cudaStream_t stream);
  void OpenAll() noexcept;

 private:
  std::map<cudaStream_t, std::atomic<uint32_t>*> closed_;
};

}  // namespace h2d::conformance

#endif  // H2D_DEVICE_CUDA_TESTING_STREAM_GATE_H_
