#include "h2d/examples/replay/cuda_machine.h"

#include <cuda_runtime_api.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "h2d/device/cuda/cuda_device.h"

namespace h2d::replay {
namespace {

constexpr int64_t kTimesAsFast = 64;

// Keeps its stream busy for as many nanoseconds as it is told.
constexpr char kOccupy[] = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry occupy(.param .u64 nanoseconds)
{
  .reg .pred %p<2>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [nanoseconds];
  mov.u64 %rd2, %globaltimer;
wait:
  mov.u64 %rd3, %globaltimer;
  sub.u64 %rd4, %rd3, %rd2;
  setp.lt.u64 %p1, %rd4, %rd1;
  @%p1 bra wait;
  ret;
}
)";

Expected<void> Called(const char* what, cudaError_t result) {
  if (result == cudaSuccess) return {};
  return MakeError(ErrorCode::kDevice,
                   std::string(what) + " failed with " + cudaGetErrorName(result) + ".", result);
}

class CudaMachine final : public Machine {
 public:
  static Expected<std::unique_ptr<Machine>> Create() {
    Expected<std::shared_ptr<CudaDevice>> device = CudaDevice::Create(0);
    if (!device) return ErrorOf(device);
    std::unique_ptr<CudaMachine> machine(new CudaMachine(*std::move(device)));
    if (Expected<void> ok = machine->Open(); !ok) return ErrorOf(ok);
    return std::unique_ptr<Machine>(std::move(machine));
  }

  ~CudaMachine() override {
    static_cast<void>(cudaDeviceSynchronize());
    for (const auto& [key, graph] : graphs_) static_cast<void>(cudaGraphExecDestroy(graph));
    for (cudaStream_t stream : streams_) static_cast<void>(cudaStreamDestroy(stream));
    for (void* memory : device_memory_) static_cast<void>(cudaFree(memory));
    for (void* memory : host_memory_) static_cast<void>(cudaFreeHost(memory));
    if (library_ != nullptr) static_cast<void>(cudaLibraryUnload(library_));
  }

  std::string_view name() const override { return name_; }
  const std::shared_ptr<Device>& device() override { return device_; }

  Expected<DevicePtr> AllocateDevice(uint64_t bytes, std::string_view) override {
    void* memory = nullptr;
    Expected<void> ok = Called("Allocating device memory", cudaMalloc(&memory, bytes));
    if (!ok) return ErrorOf(ok);
    device_memory_.push_back(memory);
    ok = Called("Zeroing device memory", cudaMemset(memory, 0, bytes));
    if (ok) ok = Called("Zeroing device memory", cudaDeviceSynchronize());
    if (!ok) return ErrorOf(ok);
    return DevicePtr(memory);
  }

  Expected<std::span<std::byte>> AllocateSnapshot(uint64_t bytes) override {
    void* memory = nullptr;
    Expected<void> ok = Called("Allocating a snapshot", cudaMallocHost(&memory, bytes));
    if (!ok) return ErrorOf(ok);
    host_memory_.push_back(memory);
    return std::span(static_cast<std::byte*>(memory), bytes);
  }

  Expected<Stream> NewStream(std::string_view) override {
    Expected<cudaStream_t> stream = NewNativeStream();
    if (!stream) return ErrorOf(stream);
    return cuda_->Wrap(*stream);
  }

  Expected<void> LaunchGraph(const Stream& stream, std::span<const Destination> reads,
                             std::span<std::byte> snapshot,
                             std::chrono::nanoseconds duration) override {
    Expected<cudaGraphExec_t> graph = GraphThatReads(reads, snapshot);
    if (!graph) return ErrorOf(graph);
    auto nanoseconds = static_cast<uint64_t>(duration.count() / kTimesAsFast);
    void* arguments[] = {&nanoseconds};
    cudaStream_t const native = CudaDevice::Native(stream);
    Expected<void> ok = Called("Launching a kernel",
                               cudaLaunchKernel(occupy_, dim3(1), dim3(1), arguments, 0, native));
    return ok ? Called("Launching a graph", cudaGraphLaunch(*graph, native)) : ok;
  }

 private:
  // What a graph reads and where it writes: the snapshot, then each destination and its size.
  using GraphKey = std::vector<uint64_t>;

  explicit CudaMachine(std::shared_ptr<CudaDevice> device)
      : cuda_(std::move(device)), device_(cuda_) {}

  Expected<void> Open() {
    cudaDeviceProp properties = {};
    Expected<void> ok =
        Called("Asking for the device's name", cudaGetDeviceProperties(&properties, 0));
    if (!ok) return ok;
    name_ = properties.name;
    ok = Called("Loading a kernel",
                cudaLibraryLoadData(&library_, kOccupy, nullptr, nullptr, 0, nullptr, nullptr, 0));
    if (!ok) return ok;
    cudaKernel_t kernel = nullptr;
    ok = Called("Finding a kernel", cudaLibraryGetKernel(&kernel, library_, "occupy"));
    if (!ok) return ok;
    occupy_ = reinterpret_cast<const void*>(kernel);
    Expected<cudaStream_t> stream = NewNativeStream();
    if (!stream) return ErrorOf(stream);
    capture_stream_ = *stream;
    return {};
  }

  Expected<cudaStream_t> NewNativeStream() {
    cudaStream_t stream = nullptr;
    Expected<void> ok =
        Called("Creating a stream", cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    if (!ok) return ErrorOf(ok);
    streams_.push_back(stream);
    return stream;
  }

  Expected<cudaGraphExec_t> GraphThatReads(std::span<const Destination> reads,
                                           std::span<std::byte> snapshot) {
    GraphKey key = {reinterpret_cast<uintptr_t>(snapshot.data())};
    for (const Destination& read : reads) {
      key.push_back(read.ptr.address());
      key.push_back(read.count * read.element_bytes);
    }
    if (const auto found = graphs_.find(key); found != graphs_.end()) return found->second;
    Expected<cudaGraphExec_t> graph = CaptureGraph(reads, snapshot);
    if (graph) graphs_.emplace(std::move(key), *graph);
    return graph;
  }

  Expected<cudaGraphExec_t> CaptureGraph(std::span<const Destination> reads,
                                         std::span<std::byte> snapshot) {
    Expected<void> ok =
        Called("Beginning a capture",
               cudaStreamBeginCapture(capture_stream_, cudaStreamCaptureModeGlobal));
    if (!ok) return ErrorOf(ok);
    for (const Destination& read : reads) {
      const uint64_t bytes = read.count * read.element_bytes;
      if (ok && bytes > 0) {
        ok = Called("Capturing a read", cudaMemcpyAsync(snapshot.data(), read.ptr.pointer(), bytes,
                                                        cudaMemcpyDeviceToHost, capture_stream_));
      }
      snapshot = snapshot.subspan(bytes);
    }
    cudaGraph_t captured = nullptr;
    const Expected<void> ended =
        Called("Ending a capture", cudaStreamEndCapture(capture_stream_, &captured));
    if (ok) ok = ended;
    cudaGraphExec_t graph = nullptr;
    if (ok) ok = Called("Instantiating a graph", cudaGraphInstantiate(&graph, captured, 0));
    if (captured != nullptr) static_cast<void>(cudaGraphDestroy(captured));
    if (!ok) return ErrorOf(ok);
    return graph;
  }

  std::shared_ptr<CudaDevice> cuda_;
  std::shared_ptr<Device> device_;
  std::string name_;
  cudaLibrary_t library_ = nullptr;
  const void* occupy_ = nullptr;
  cudaStream_t capture_stream_ = nullptr;
  std::map<GraphKey, cudaGraphExec_t> graphs_;
  std::vector<cudaStream_t> streams_;
  std::vector<void*> device_memory_;
  std::vector<void*> host_memory_;
};

}  // namespace

Expected<std::unique_ptr<Machine>> NewCudaMachine() { return CudaMachine::Create(); }

}  // namespace h2d::replay
