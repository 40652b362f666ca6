// The ring that this library set out to replace, in C++: eight slots used in turn, one event each,
// and a lock held while the next slot's event is waited for.
#ifndef H2D_BENCH_DEVICE_COSTS_ORIGINAL_RING_H_
#define H2D_BENCH_DEVICE_COSTS_ORIGINAL_RING_H_

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>

#include "h2d/bench/live_graph/cuda_check.h"

namespace h2d::bench {

class OriginalRing {
 public:
  explicit OriginalRing(uint64_t slot_bytes) : slot_bytes_(slot_bytes) {
    Check(cudaMallocHost(&memory_, kDepth * slot_bytes), "Allocating pinned memory");
    for (cudaEvent_t& event : events_) {
      Check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "Creating an event");
    }
  }

  void Copy(void* to, const void* values, uint64_t bytes, cudaStream_t stream) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const size_t slot = next_++ % kDepth;
    if (next_ > kDepth) Check(cudaEventSynchronize(events_[slot]), "Waiting for a slot");
    std::byte* const pinned = static_cast<std::byte*>(memory_) + slot * slot_bytes_;
    std::memcpy(pinned, values, bytes);
    Check(cudaMemcpyAsync(to, pinned, bytes, cudaMemcpyHostToDevice, stream), "A copy");
    Check(cudaEventRecord(events_[slot], stream), "A record");
  }

 private:
  static constexpr size_t kDepth = 8;

  const uint64_t slot_bytes_;
  std::mutex mutex_;
  void* memory_ = nullptr;
  std::array<cudaEvent_t, kDepth> events_ = {};
  uint64_t next_ = 0;
};

}  // namespace h2d::bench

#endif  // H2D_BENCH_DEVICE_COSTS_ORIGINAL_RING_H_
