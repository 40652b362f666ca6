// One stream, pinned slots and events by the runtime, and the same by the library.
#ifndef H2D_BENCH_DEVICE_COSTS_SETTING_H_
#define H2D_BENCH_DEVICE_COSTS_SETTING_H_

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "h2d/bench/live_graph/cuda_check.h"
#include "h2d/device/cuda/cuda_device.h"

namespace h2d::bench {

inline constexpr uint64_t kSlots = 64;

struct Setting {
  explicit Setting(std::shared_ptr<CudaDevice> of_device) : device(std::move(of_device)) {
    Check(cudaStreamCreateWithFlags(&native, cudaStreamNonBlocking), "Creating a stream");
    Check(cudaMalloc(&memory, kSlots * kMostBytes), "Allocating device memory");
    Check(cudaMallocHost(&pinned, kSlots * kMostBytes), "Allocating pinned memory");
    for (cudaEvent_t& event : native_events) {
      Check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "Creating an event");
    }
    stream = Must(device->Wrap(native));
    for (uint64_t i = 0; i < kSlots; ++i) events.push_back(Must(device->CreateEvent()));
  }

  static constexpr uint64_t kMostBytes = 64 << 10;

  std::byte* Slot(uint64_t n) const {
    return static_cast<std::byte*>(pinned) + n % kSlots * kMostBytes;
  }
  std::byte* There(uint64_t n) const {
    return static_cast<std::byte*>(memory) + n % kSlots * kMostBytes;
  }

  std::shared_ptr<CudaDevice> device;
  cudaStream_t native = nullptr;
  void* memory = nullptr;
  void* pinned = nullptr;
  std::array<cudaEvent_t, kSlots> native_events = {};
  std::optional<Stream> stream;
  std::vector<Event> events;
};

}  // namespace h2d::bench

#endif  // H2D_BENCH_DEVICE_COSTS_SETTING_H_
