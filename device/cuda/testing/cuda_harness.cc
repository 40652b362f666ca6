#include "h2d/device/cuda/testing/cuda_harness.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "h2d/device/cuda/cuda_device.h"
#include "h2d/device/cuda/engine/cuda_graph.h"
#include "h2d/device/cuda/engine/cuda_memory.h"
#include "h2d/device/cuda/engine/cuda_stream.h"
#include "h2d/device/cuda/testing/stream_gate.h"

namespace h2d::conformance {
namespace {

class CapturedGraph final : public Graph {
 public:
  explicit CapturedGraph(CudaExecutableGraph graph) : graph_(std::move(graph)) {}
  const CudaExecutableGraph& get() const { return graph_; }

 private:
  CudaExecutableGraph graph_;
};

// Device memory that lasts for the process, handed out test by test: an allocation may wait for
// streams, and a test may hold one.
class Arena {
 public:
  static constexpr uint64_t kBytes = uint64_t{512} << 20;

  static Expected<Arena*> OfDevice(const CudaDevice& device) {
    static auto* const arenas = new std::map<int, Arena>;
    const auto found = arenas->find(device.ordinal());
    if (found != arenas->end()) return &found->second;
    Expected<CudaMemory> memory = CudaMemory::Allocate(device, kBytes);
    if (!memory) return ErrorOf(memory);
    return &arenas->emplace(device.ordinal(), Arena(*std::move(memory))).first->second;
  }

  void Reset() { used_ = 0; }
  Expected<DevicePtr> Take(uint64_t bytes) {
    const uint64_t block = (bytes + 255) / 256 * 256;
    if (block > kBytes - used_) return ResourceExhausted("The test's device memory is used up.");
    return memory_.ptr() + std::exchange(used_, used_ + block);
  }

 private:
  explicit Arena(CudaMemory memory) : memory_(std::move(memory)) {}

  CudaMemory memory_;
  uint64_t used_ = 0;
};

class CudaHarness final : public Harness {
 public:
  static Expected<std::unique_ptr<CudaHarness>> Create(int ordinal) {
    Expected<std::shared_ptr<CudaDevice>> device = CudaDevice::Create(ordinal);
    if (!device) return ErrorOf(device);
    // Its current device's context is current on a thread that uses CUDA, as an engine's does.
    static_cast<void>(cudaFree(nullptr));
    int current_before = -1;
    static_cast<void>(cudaGetDevice(&current_before));
    Expected<Arena*> arena = Arena::OfDevice(**device);
    if (!arena) return ErrorOf(arena);
    (*arena)->Reset();
    Expected<CudaStream> own_stream = CudaStream::Create(**device);
    if (!own_stream) return ErrorOf(own_stream);
    return std::unique_ptr<CudaHarness>(
        new CudaHarness(*std::move(device), **arena, *std::move(own_stream), current_before));
  }

  ~CudaHarness() override { Quiesce(); }

  void set_second(std::unique_ptr<CudaHarness> second) { second_ = std::move(second); }

  std::shared_ptr<Device> device() override { return device_; }
  Harness* Second() override { return second_.get(); }

  // --- Device memory ---

  Expected<DevicePtr> AllocateDevice(uint64_t bytes) override {
    Expected<DevicePtr> memory = TakeMemory(bytes);
    if (!memory) return memory;
    // On a stream of the harness's own: the legacy stream would wait for held blocking streams.
    Expected<void> ok = FillAsync(*device_, *memory, std::byte{0}, bytes, own_stream_.get());
    if (ok) ok = h2d::Synchronize(*device_, own_stream_.get());
    if (!ok) return ErrorOf(ok);
    return memory;
  }

  Expected<std::vector<std::byte>> ReadBack(DevicePtr ptr, uint64_t bytes,
                                            const Stream& stream) override {
    std::vector<std::byte> read(bytes);
    Expected<void> ok = CopyToHostAsync(*device_, read, ptr, stream);
    if (ok) ok = h2d::Synchronize(*device_, stream);
    if (!ok) return ErrorOf(ok);
    return read;
  }

  Expected<void> Fill(DevicePtr ptr, std::byte value, uint64_t bytes,
                      const Stream& stream) override {
    return FillAsync(*device_, ptr, value, bytes, stream);
  }

  // --- Streams ---

  Expected<Stream> NewStream(StreamFlavor flavor) override {
    Expected<CudaStream> stream = CudaStream::Create(*device_, flavor == StreamFlavor::kBlocking
                                                                   ? CudaStreamKind::kBlocking
                                                                   : CudaStreamKind::kNonBlocking);
    if (!stream) return ErrorOf(stream);
    streams_.push_back(*std::move(stream));
    return streams_.back().get();
  }

  Expected<void> DestroyStream(const Stream& stream) override {
    std::erase_if(streams_, [&](const CudaStream& own) {
      return own.native() == CudaDevice::Native(stream);
    });
    return {};
  }

  Stream LegacyStream() override { return device_->LegacyStream(); }
  Stream PerThreadStream() override { return device_->PerThreadStream(); }
  Expected<void> Hold(const Stream& stream) override { return gate_.Close(stream); }
  Expected<void> Release(const Stream& stream) override { return gate_.Open(stream); }

  Expected<void> Synchronize(const Stream& stream) override {
    return h2d::Synchronize(*device_, stream);
  }

  void Quiesce() override {
    if (second_ != nullptr) second_->Quiesce();
    gate_.OpenAll();
    const Expected<void> ok = SynchronizeDevice(*device_);
    if (!ok) complaints_ += ok.error().message + "\n";
  }

  // --- Captures ---

  Expected<void> BeginCapture(const Stream& stream, CaptureMode mode) override {
    return h2d::BeginCapture(*device_, stream, NativeMode(mode));
  }

  Expected<void> InvalidateCapture(const Stream& stream) override {
    if (Synchronize(stream)) {
      return FailedPrecondition("The capture survived the synchronization of its stream.");
    }
    return {};
  }

  Expected<std::unique_ptr<Graph>> EndCapture(const Stream& stream) override {
    Expected<CudaGraph> graph = CudaGraph::EndCapture(*device_, stream);
    if (!graph) return ErrorOf(graph);
    Expected<CudaExecutableGraph> executable = graph->Instantiate();
    if (!executable) return ErrorOf(executable);
    return std::make_unique<CapturedGraph>(*std::move(executable));
  }

  Expected<void> Replay(Graph& graph, const Stream& stream) override {
    return static_cast<CapturedGraph&>(graph).get().Launch(stream);
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
  CudaHarness(std::shared_ptr<CudaDevice> device, Arena& arena, CudaStream own_stream,
              int current_before)
      : device_(std::move(device)),
        arena_(arena),
        current_before_(current_before),
        own_stream_(std::move(own_stream)),
        gate_(device_) {}

  static CudaCaptureMode NativeMode(CaptureMode mode) {
    switch (mode) {
      case CaptureMode::kGlobal:
        return CudaCaptureMode::kGlobal;
      case CaptureMode::kThreadLocal:
        return CudaCaptureMode::kThreadLocal;
      case CaptureMode::kRelaxed:
        break;
    }
    return CudaCaptureMode::kRelaxed;
  }

  // Large memory is an allocation of its own, so that its end is one that CUDA knows.
  Expected<DevicePtr> TakeMemory(uint64_t bytes) {
    constexpr uint64_t kLargeBytes = 16 << 20;
    if (bytes < kLargeBytes) return arena_.Take(bytes);
    Expected<CudaMemory> memory = CudaMemory::Allocate(*device_, bytes);
    if (!memory) return ErrorOf(memory);
    allocations_.push_back(*std::move(memory));
    return allocations_.back().ptr();
  }

  const std::shared_ptr<CudaDevice> device_;
  Arena& arena_;
  const int current_before_;
  CudaStream own_stream_;
  std::vector<CudaStream> streams_;
  std::vector<CudaMemory> allocations_;
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
