// One stream, pinned slots and events by the runtime, and the same by the library.
#ifndef H2D_BENCH_DEVICE_COSTS_SETTING_H_
#define H2D_BENCH_DEVICE_COSTS_SETTING_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "h2d/bench/live_graph/cuda_check.h"
#include "h2d/device/cuda/cuda_device.h"

namespace h2d::bench {

struct Setting {
  explicit Setting(std::shared_ptr<CudaDevice> of_device, uint64_t slot_count = 64)
      : device(std::move(of_device)), slots(slot_count), native_events(slot_count) {
    Check(cudaStreamCreateWithFlags(&native, cudaStreamNonBlocking), "Creating a stream");
    Check(cudaMalloc(&memory, slots * kMostBytes), "Allocating device memory");
    Check(cudaMallocHost(&pinned, slots * kMostBytes), "Allocating pinned memory");
    for (cudaEvent_t& event : native_events) {
      Check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "Creating an event");
    }
    stream = Must(device->Wrap(native));
    for (uint64_t i = 0; i < slots; ++i) events.push_back(Must(device->CreateEvent()));
  }

  static constexpr uint64_t kMostBytes = 64 << 10;

  // A slot of `bytes` bytes. They lie one behind the other, as a ring for values of one size has
  // them: at a power of two apart they would all want the same few places of the caches.
  std::byte* Slot(uint64_t n, uint64_t bytes) const {
    return static_cast<std::byte*>(pinned) + n % slots * bytes;
  }
  std::byte* There(uint64_t n) const {
    return static_cast<std::byte*>(memory) + n % slots * kMostBytes;
  }

  std::shared_ptr<CudaDevice> device;
  uint64_t slots;
  std::vector<cudaEvent_t> native_events;
  cudaStream_t native = nullptr;
  void* memory = nullptr;
  void* pinned = nullptr;
  std::optional<Stream> stream;
  std::vector<Event> events;
};

}  // namespace h2d::bench

#endif  // H2D_BENCH_DEVICE_COSTS_SETTING_H_
