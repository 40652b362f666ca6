#include "h2d/bench/live_graph/loads.h"

#include <cstring>
#include <utility>

#include "h2d/bench/live_graph/cuda_check.h"
#include "h2d/stager/pinned_stager.h"

namespace h2d::bench {
namespace {

constexpr uint64_t kDestinations = 64;

cudaStream_t NewStream() {
  cudaStream_t stream = nullptr;
  Check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "Creating a stream");
  return stream;
}

std::byte* AllocateDevice(uint64_t bytes) {
  void* memory = nullptr;
  Check(cudaMalloc(&memory, bytes), "Allocating device memory");
  return static_cast<std::byte*>(memory);
}

Load StagerLoad(const std::shared_ptr<CudaDevice>& device, std::string name, uint64_t bytes,
                double target) {
  const std::shared_ptr<PinnedStager> stager =
      Must(PinnedStager::Create(device, {.slot_bytes = bytes}));
  const Stream stream = Must(device->Wrap(NewStream()));
  std::byte* const memory = AllocateDevice(kDestinations * bytes);
  auto values = std::make_shared<std::vector<int32_t>>(bytes / 4);
  return {
      std::move(name),
      [=](uint64_t n) {
        (*values)[0] = static_cast<int32_t>(n);
        const Destination destination{DevicePtr(memory + n % kDestinations * bytes), bytes / 4, 4};
        Must(stager->Copy(destination, *values, stream));
      },
      target};
}

// Copies without a check whether the slot is free: what the stager is measured against.
Load RawLoad(std::string name, uint64_t bytes) {
  cudaStream_t const stream = NewStream();
  std::byte* const memory = AllocateDevice(kDestinations * bytes);
  void* pinned = nullptr;
  Check(cudaMallocHost(&pinned, kDestinations * bytes), "Allocating pinned memory");
  auto values = std::make_shared<std::vector<int32_t>>(bytes / 4);
  auto events = std::make_shared<std::vector<cudaEvent_t>>(kDestinations);
  for (cudaEvent_t& event : *events) {
    Check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "Creating an event");
  }
  return {
      std::move(name), [=](uint64_t n) {
        const uint64_t slot = n % kDestinations;
        auto* const source = static_cast<std::byte*>(pinned) + slot * bytes;
        std::memcpy(source, values->data(), bytes);
        Check(cudaMemcpyAsync(memory + slot * bytes, source, bytes, cudaMemcpyHostToDevice, stream),
              "A raw copy");
        Check(cudaEventRecord((*events)[slot], stream), "Recording an event");
      }};
}

Load FillLoad(std::string name, const Kernels& kernels, uint64_t bytes) {
  cudaStream_t const stream = NewStream();
  void* const memory = AllocateDevice(bytes);
  const void* const fill = kernels.Find("fill");
  return {std::move(name), [=](uint64_t n) {
            void* data = memory;
            auto count = static_cast<unsigned>(bytes / 4);
            int value = static_cast<int>(n);
            void* arguments[] = {&data, &count, &value};
            Check(
                cudaLaunchKernel(fill, dim3((count + 255) / 256), dim3(256), arguments, 0, stream),
                "Launching fill");
          }};
}

Load DeviceCopyLoad(std::string name, uint64_t bytes) {
  cudaStream_t const stream = NewStream();
  std::byte* const memory = AllocateDevice(2 * bytes);
  return {std::move(name), [=](uint64_t) {
            Check(cudaMemcpyAsync(memory, memory + bytes, bytes, cudaMemcpyDeviceToDevice, stream),
                  "A copy within the device");
          }};
}

Load MemsetLoad(std::string name, uint64_t bytes) {
  cudaStream_t const stream = NewStream();
  std::byte* const memory = AllocateDevice(bytes);
  return {std::move(name), [=](uint64_t n) {
            Check(cudaMemsetAsync(memory, static_cast<int>(n & 0xff), bytes, stream), "A memset");
          }};
}

}  // namespace

std::vector<Load> MakeLoads(std::shared_ptr<CudaDevice> device, const Kernels& kernels) {
  constexpr uint64_t kKiB = 1024;
  return {
      {"nothing", nullptr},
      StagerLoad(device, "stager 1 KiB", kKiB, 1.001),
      RawLoad("raw copies 1 KiB", kKiB),
      StagerLoad(device, "stager 64 KiB", 64 * kKiB, 0),
      RawLoad("raw copies 64 KiB", 64 * kKiB),
      FillLoad("fill kernels 1 KiB", kernels, kKiB),
      DeviceCopyLoad("D2D copies 1 KiB", kKiB),
      MemsetLoad("memsets 1 KiB", kKiB),
      {"nothing again", nullptr},
  };
}

}  // namespace h2d::bench
