#include "h2d/device/cuda/testing/cuda_harness.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "h2d/device/cuda/cuda_device.h"
#include "h2d/device/cuda/testing/runtime_call.h"
#include "h2d/device/cuda/testing/stream_gate.h"

namespace h2d::conformance {
namespace {

class CudaGraph final : public Graph {
 public:
  explicit CudaGraph(cudaGraphExec_t executable) : executable_(executable) {}
  ~CudaGraph() override { static_cast<void>(cudaGraphExecDestroy(executable_)); }
  cudaGraphExec_t executable() const { return executable_; }

 private:
  cudaGraphExec_t executable_;
};

// Device memory that lasts for the process, handed out test by test: an allocation may wait for
// streams, and a test may hold one.
class Arena {
 public:
  static constexpr uint64_t kBytes = uint64_t{512} << 20;

  // The arena of the device that is current.
  static Expected<Arena*> OfDevice(int ordinal) {
    static auto* const arenas = new std::map<int, Arena>;
    Arena& arena = (*arenas)[ordinal];
    if (arena.base_ != nullptr) return &arena;
    void* base = nullptr;
    if (Expected<void> ok = Called("Allocating device memory", cudaMalloc(&base, kBytes)); !ok) {
      return ErrorOf(ok);
    }
    arena.base_ = static_cast<std::byte*>(base);
    return &arena;
  }

  void Reset() { used_ = 0; }
  Expected<std::byte*> Take(uint64_t bytes) {
    const uint64_t block = (bytes + 255) / 256 * 256;
    if (block > kBytes - used_) return ResourceExhausted("The test's device memory is used up.");
    return base_ + std::exchange(used_, used_ + block);
  }

 private:
  std::byte* base_ = nullptr;
  uint64_t used_ = 0;
};

class CudaHarness final : public Harness {
 public:
  static Expected<std::unique_ptr<CudaHarness>> Create(int ordinal) {
    Expected<std::shared_ptr<CudaDevice>> device = CudaDevice::Create(ordinal);
    if (!device) return ErrorOf(device);
    int current_before = -1;
    static_cast<void>(cudaGetDevice(&current_before));
    const CurrentDevice current(ordinal);
    Expected<Arena*> arena = Arena::OfDevice(ordinal);
    if (!arena) return ErrorOf(arena);
    (*arena)->Reset();
    auto harness =
        std::unique_ptr<CudaHarness>(new CudaHarness(*std::move(device), **arena, current_before));
    if (Expected<void> ok =
            Called("Creating a stream",
                   cudaStreamCreateWithFlags(&harness->own_stream_, cudaStreamNonBlocking));
        !ok) {
      return ErrorOf(ok);
    }
    return harness;
  }

  ~CudaHarness() override {
    Quiesce();
    const CurrentDevice current(ordinal());
    for (void* allocation : allocations_) static_cast<void>(cudaFree(allocation));
    for (cudaStream_t stream : streams_) static_cast<void>(cudaStreamDestroy(stream));
    static_cast<void>(cudaStreamDestroy(own_stream_));
  }

  void set_second(std::unique_ptr<CudaHarness> second) { second_ = std::move(second); }

  std::shared_ptr<Device> device() override { return device_; }
  Harness* Second() override { return second_.get(); }

  // --- Device memory ---

  Expected<DevicePtr> AllocateDevice(uint64_t bytes) override {
    const CurrentDevice current(ordinal());
    Expected<std::byte*> memory = TakeMemory(bytes);
    if (!memory) return ErrorOf(memory);
    // On a stream of the harness's own: the legacy stream would wait for held blocking streams.
    if (Expected<void> ok = Called("Zeroing", cudaMemsetAsync(*memory, 0, bytes, own_stream_));
        !ok) {
      return ErrorOf(ok);
    }
    if (Expected<void> ok = Called("Zeroing", cudaStreamSynchronize(own_stream_)); !ok) {
      return ErrorOf(ok);
    }
    return DevicePtr(*memory);
  }

  Expected<std::vector<std::byte>> ReadBack(DevicePtr ptr, uint64_t bytes,
                                            const Stream& stream) override {
    const CurrentDevice current(ordinal());
    std::vector<std::byte> read(bytes);
    Expected<void> ok = Called(
        "Reading back",
        cudaMemcpyAsync(read.data(), ptr.pointer(), bytes, cudaMemcpyDeviceToHost, Native(stream)));
    if (ok) ok = Called("Reading back", cudaStreamSynchronize(Native(stream)));
    if (!ok) return ErrorOf(ok);
    return read;
  }

  Expected<void> Fill(DevicePtr ptr, std::byte value, uint64_t bytes,
                      const Stream& stream) override {
    const CurrentDevice current(ordinal());
    return Called("Filling",
                  cudaMemsetAsync(ptr.pointer(), static_cast<int>(value), bytes, Native(stream)));
  }

  // --- Streams ---

  Expected<Stream> NewStream(StreamFlavor flavor) override {
    const CurrentDevice current(ordinal());
    cudaStream_t stream = nullptr;
    const unsigned flags =
        flavor == StreamFlavor::kBlocking ? cudaStreamDefault : cudaStreamNonBlocking;
    if (Expected<void> ok = Called("Creating a stream", cudaStreamCreateWithFlags(&stream, flags));
        !ok) {
      return ErrorOf(ok);
    }
    streams_.push_back(stream);
    return device_->Wrap(stream);
  }

  Expected<void> DestroyStream(const Stream& stream) override {
    std::erase(streams_, Native(stream));
    return Called("Destroying a stream", cudaStreamDestroy(Native(stream)));
  }

  Stream LegacyStream() override { return device_->LegacyStream(); }
  Stream PerThreadStream() override { return device_->PerThreadStream(); }
  Expected<void> Hold(const Stream& stream) override { return gate_.Close(Native(stream)); }
  Expected<void> Release(const Stream& stream) override { return gate_.Open(Native(stream)); }

  Expected<void> Synchronize(const Stream& stream) override {
    const CurrentDevice current(ordinal());
    return Called("Synchronizing a stream", cudaStreamSynchronize(Native(stream)));
  }

  void Quiesce() override {
    if (second_ != nullptr) second_->Quiesce();
    gate_.OpenAll();
    const CurrentDevice current(ordinal());
    const Expected<void> ok = Called("Synchronizing the device", cudaDeviceSynchronize());
    if (!ok) complaints_ += ok.error().message + "\n";
  }

  // --- Captures ---

  Expected<void> BeginCapture(const Stream& stream, CaptureMode mode) override {
    return Called("Beginning a capture", cudaStreamBeginCapture(Native(stream), NativeMode(mode)));
  }

  Expected<void> InvalidateCapture(const Stream& stream) override {
    if (Called("Synchronizing a capturing stream", cudaStreamSynchronize(Native(stream)))) {
      return FailedPrecondition("The capture survived the synchronization of its stream.");
    }
    return {};
  }

  Expected<std::unique_ptr<Graph>> EndCapture(const Stream& stream) override {
    cudaGraph_t graph = nullptr;
    if (Expected<void> ok =
            Called("Ending a capture", cudaStreamEndCapture(Native(stream), &graph));
        !ok) {
      return ErrorOf(ok);
    }
    const CurrentDevice current(ordinal());
    cudaGraphExec_t executable = nullptr;
    Expected<void> ok =
        Called("Instantiating a graph", cudaGraphInstantiate(&executable, graph, /*flags=*/0));
    static_cast<void>(cudaGraphDestroy(graph));
    if (!ok) return ErrorOf(ok);
    return std::make_unique<CudaGraph>(executable);
  }

  Expected<void> Replay(Graph& graph, const Stream& stream) override {
    const cudaGraphExec_t executable = static_cast<CudaGraph&>(graph).executable();
    return Called("Launching a graph", cudaGraphLaunch(executable, Native(stream)));
  }

  // --- Verdict ---

  // The library must leave neither a pending error of the runtime nor another current device.
  std::string Complaints() override {
    if (second_ != nullptr) complaints_ += second_->Complaints();
    if (const cudaError_t left = cudaGetLastError(); left != cudaSuccess) {
      complaints_ += std::string("the runtime's last error is ") + cudaGetErrorName(left) + "\n";
    }
    int current = -1;
    if (cudaGetDevice(&current) != cudaSuccess || current != current_before_) {
      complaints_ += "the current device is " + std::to_string(current) + " and was " +
                     std::to_string(current_before_) + "\n";
    }
    return std::exchange(complaints_, {});
  }

 private:
  CudaHarness(std::shared_ptr<CudaDevice> device, Arena& arena, int current_before)
      : device_(std::move(device)), arena_(arena), current_before_(current_before) {}

  int ordinal() const { return device_->ordinal(); }
  static cudaStream_t Native(const Stream& stream) { return CudaDevice::Native(stream); }
  static cudaStreamCaptureMode NativeMode(CaptureMode mode) {
    switch (mode) {
      case CaptureMode::kGlobal:
        return cudaStreamCaptureModeGlobal;
      case CaptureMode::kThreadLocal:
        return cudaStreamCaptureModeThreadLocal;
      case CaptureMode::kRelaxed:
        break;
    }
    return cudaStreamCaptureModeRelaxed;
  }

  // Large memory is an allocation of its own, so that its end is one that CUDA knows.
  Expected<std::byte*> TakeMemory(uint64_t bytes) {
    constexpr uint64_t kLargeBytes = 16 << 20;
    if (bytes < kLargeBytes) return arena_.Take(bytes);
    void* memory = nullptr;
    if (Expected<void> ok = Called("Allocating device memory", cudaMalloc(&memory, bytes)); !ok) {
      return ErrorOf(ok);
    }
    allocations_.push_back(memory);
    return static_cast<std::byte*>(memory);
  }

  const std::shared_ptr<CudaDevice> device_;
  Arena& arena_;
  const int current_before_;
  cudaStream_t own_stream_ = nullptr;
  std::vector<cudaStream_t> streams_;
  std::vector<void*> allocations_;
  StreamGate gate_;
  std::string complaints_;
  std::unique_ptr<CudaHarness> second_;
};

}  // namespace

Expected<std::unique_ptr<Harness>> MakeCudaHarness(int ordinal, bool with_second) {
  Expected<std::unique_ptr<CudaHarness>> harness = CudaHarness::Create(ordinal);
  if (!harness) return ErrorOf(harness);
  int count = 0;
  if (with_second && cudaGetDeviceCount(&count) == cudaSuccess && ordinal + 1 < count) {
    Expected<std::unique_ptr<CudaHarness>> second = CudaHarness::Create(ordinal + 1);
    if (!second) return ErrorOf(second);
    (*harness)->set_second(*std::move(second));
  }
  return *std::move(harness);
}

}  // namespace h2d::conformance
