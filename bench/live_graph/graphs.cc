#include "h2d/bench/live_graph/graphs.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "h2d/bench/live_graph/cuda_check.h"

namespace h2d::bench {

const char kKernelSource[] = R"(
extern "C" __global__ void scale(float4* data, unsigned long long count, float factor) {
  const unsigned long long stride = (unsigned long long)gridDim.x * blockDim.x;
  for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    float4 v = data[i];
    v.x *= factor; v.y *= factor; v.z *= factor; v.w *= factor;
    data[i] = v;
  }
}
extern "C" __global__ void multiply(float* out, int rounds) {
  float x = threadIdx.x * 1e-6f;
  for (int i = 0; i < rounds; ++i) x = fmaf(x, 0.9999f, 1e-7f);
  if (x == 42.0f) out[0] = x;
}
extern "C" __global__ void fill(int* data, unsigned count, int value) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] = value;
}
)";

namespace {

unsigned Multiprocessors() {
  int device = 0;
  int count = 0;
  Check(cudaGetDevice(&device), "Asking for the current device");
  Check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device),
        "Counting the multiprocessors");
  return static_cast<unsigned>(count);
}

void* Allocate(size_t bytes) {
  void* memory = nullptr;
  Check(cudaMalloc(&memory, bytes), "Allocating device memory");
  Check(cudaMemset(memory, 0, bytes), "Zeroing device memory");
  return memory;
}

void LaunchScale(const void* scale, void* data, uint64_t bytes, unsigned blocks,
                 cudaStream_t stream) {
  unsigned long long count = bytes / 16;
  float factor = 1.0F;
  void* arguments[] = {&data, &count, &factor};
  Check(cudaLaunchKernel(scale, dim3(blocks), dim3(256), arguments, 0, stream), "Launching scale");
}

void LaunchMultiply(const void* multiply, void* out, int rounds, unsigned blocks,
                    cudaStream_t stream) {
  void* arguments[] = {&out, &rounds};
  Check(cudaLaunchKernel(multiply, dim3(blocks), dim3(256), arguments, 0, stream),
        "Launching multiply");
}

LiveGraph Capture(std::string name, cudaStream_t stream, const std::function<void()>& launch) {
  LiveGraph graph{std::move(name)};
  cudaGraph_t captured = nullptr;
  Check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "Beginning a capture");
  launch();
  Check(cudaStreamEndCapture(stream, &captured), "Ending a capture");
  Check(cudaGraphInstantiate(&graph.executable, captured, 0), "Instantiating a graph");
  Check(cudaGraphDestroy(captured), "Destroying a graph");
  return graph;
}

}  // namespace

std::vector<LiveGraph> CaptureGraphs(const Kernels& kernels, cudaStream_t stream) {
  constexpr uint64_t kLargeBytes = uint64_t{1} << 30;
  constexpr uint64_t kSmallBytes = uint64_t{8} << 20;
  const unsigned multiprocessors = Multiprocessors();
  const void* const scale = kernels.Find("scale");
  const void* const multiply = kernels.Find("multiply");
  void* const large = Allocate(kLargeBytes);
  std::vector<LiveGraph> graphs;
  graphs.push_back(Capture("decode-like", stream, [&] {
    for (int i = 0; i < 300; ++i) LaunchScale(scale, large, kSmallBytes, multiprocessors, stream);
  }));
  graphs.push_back(Capture("memory-bound", stream, [&] {
    for (int i = 0; i < 5; ++i) {
      LaunchScale(scale, large, kLargeBytes, 8 * multiprocessors, stream);
    }
  }));
  graphs.push_back(Capture("arithmetic", stream, [&] {
    for (int i = 0; i < 4; ++i)
      LaunchMultiply(multiply, large, 100'000, 8 * multiprocessors, stream);
  }));
  Check(cudaStreamSynchronize(stream), "Waiting for the captures");
  return graphs;
}

}  // namespace h2d::bench
