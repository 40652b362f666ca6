#include "h2d/tests/cuda/cuda_plan_harness.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "h2d/device/cuda/testing/runtime_call.h"
#include "h2d/device/cuda/testing/stream_gate.h"
#include "h2d/device/faulty/faulty_device.h"
#include "h2d/tests/cuda/baton.h"

namespace h2d::testing {
namespace {

using conformance::Called;

// Memory for one plan at a time, made once: allocating may wait for streams, and plans hold some.
class Arena {
 public:
  static constexpr uint64_t kBytes = 16 << 20;

  explicit Arena(void* base) : base_(static_cast<std::byte*>(base)) {}

  void Reset() { used_ = 0; }
  Expected<std::byte*> Take(uint64_t bytes) {
    const uint64_t block = (bytes + 255) / 256 * 256;
    if (base_ == nullptr || block > kBytes - used_) {
      return ResourceExhausted("The plan's memory is used up.");
    }
    return base_ + std::exchange(used_, used_ + block);
  }

 private:
  std::byte* base_;
  uint64_t used_ = 0;
};

Arena& DeviceArena() {
  static auto* const arena = [] {
    void* base = nullptr;
    static_cast<void>(Called("Allocating device memory", cudaMalloc(&base, Arena::kBytes)));
    return new Arena(base);
  }();
  return *arena;
}

Arena& PinnedArena() {
  static auto* const arena = [] {
    void* base = nullptr;
    static_cast<void>(Called("Allocating pinned memory", cudaMallocHost(&base, Arena::kBytes)));
    return new Arena(base);
  }();
  return *arena;
}

// What the callers do must not hurt another thread's capture either.
class Relaxed {
 public:
  Relaxed() { static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode_)); }
  ~Relaxed() { static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode_)); }
  Relaxed(const Relaxed&) = delete;
  Relaxed& operator=(const Relaxed&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

class CudaPlanHarness final : public PlanHarness {
 public:
  explicit CudaPlanHarness(std::shared_ptr<CudaDevice> device)
      : cuda_(std::move(device)), faulty_(FaultyDevice::Create(cuda_)) {
    DeviceArena().Reset();
    PinnedArena().Reset();
  }

  ~CudaPlanHarness() override {
    gate_.OpenAll();
    static_cast<void>(Called("Synchronizing the device", cudaDeviceSynchronize()));
    for (cudaStream_t stream : streams_) static_cast<void>(cudaStreamDestroy(stream));
  }

  std::shared_ptr<Device> device() override { return faulty_; }
  Device& callers_device() override { return *cuda_; }

  Expected<DevicePtr> Allocate(const Bytes& initial, std::string_view) override {
    Expected<std::byte*> memory = DeviceArena().Take(initial.size());
    if (!memory) return ErrorOf(memory);
    Expected<void> ok =
        Called("Writing device memory",
               cudaMemcpy(*memory, initial.data(), initial.size(), cudaMemcpyHostToDevice));
    // The plan's streams do not wait for the legacy stream.
    if (ok) ok = Called("Synchronizing the device", cudaDeviceSynchronize());
    if (!ok) return ErrorOf(ok);
    return DevicePtr(*memory);
  }

  Expected<Stream> NewStream(std::string_view) override {
    const Relaxed relaxed;
    cudaStream_t stream = nullptr;
    Expected<void> ok =
        Called("Creating a stream", cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    if (!ok) return ErrorOf(ok);
    streams_.push_back(stream);
    return cuda_->Wrap(stream);
  }
  Expected<void> DestroyStream(const Stream& stream) override {
    const Relaxed relaxed;
    std::erase(streams_, CudaDevice::Native(stream));
    return Called("Destroying a stream", cudaStreamDestroy(CudaDevice::Native(stream)));
  }

  bool CanHold() const override { return true; }
  Expected<void> Hold(const Stream& stream) override {
    return gate_.Close(CudaDevice::Native(stream));
  }
  Expected<void> Release(const Stream& stream) override {
    return gate_.Open(CudaDevice::Native(stream));
  }
  Expected<void> CompleteNext(const Stream&) override { return {}; }
  void Advance(std::chrono::nanoseconds) override {}

  size_t Finish() override {
    if (!Called("Synchronizing the device", cudaDeviceSynchronize())) return 1;
    for (Reading& reading : std::exchange(readings_, {})) {
      reading.into->assign(reading.bytes.begin(), reading.bytes.end());
    }
    return 0;
  }

  Expected<void> BeginCapture(const Stream& stream, uint32_t mode) override {
    constexpr cudaStreamCaptureMode kModes[] = {cudaStreamCaptureModeGlobal,
                                                cudaStreamCaptureModeThreadLocal,
                                                cudaStreamCaptureModeRelaxed};
    return Called("Beginning a capture",
                  cudaStreamBeginCapture(CudaDevice::Native(stream), kModes[mode % 3]));
  }
  Expected<size_t> EndCapture(const Stream& stream) override {
    cudaGraph_t graph = nullptr;
    Expected<void> ok =
        Called("Ending a capture", cudaStreamEndCapture(CudaDevice::Native(stream), &graph));
    if (!ok) return ErrorOf(ok);
    size_t nodes = 0;
    ok = Called("Counting a graph's nodes", cudaGraphGetNodes(graph, nullptr, &nodes));
    static_cast<void>(cudaGraphDestroy(graph));
    if (!ok) return ErrorOf(ok);
    return nodes;
  }

  Expected<void> LaunchRead(const Stream& stream, DevicePtr from, size_t bytes,
                            std::shared_ptr<Bytes> into) override {
    // Into pinned memory: a copy to pageable memory would wait for a held stream.
    Expected<std::byte*> landing = PinnedArena().Take(bytes);
    if (!landing) return ErrorOf(landing);
    const auto* const landed = reinterpret_cast<const uint8_t*>(*landing);
    readings_.push_back({std::move(into), {landed, bytes}});
    return Called("Reading", cudaMemcpyAsync(*landing, from.pointer(), bytes,
                                             cudaMemcpyDeviceToHost, CudaDevice::Native(stream)));
  }
  Expected<void> LaunchWrite(const Stream& stream, DevicePtr to, Bytes bytes) override {
    Expected<std::byte*> source = PinnedArena().Take(bytes.size());
    if (!source) return ErrorOf(source);
    std::memcpy(*source, bytes.data(), bytes.size());
    return Called("Writing", cudaMemcpyAsync(to.pointer(), *source, bytes.size(),
                                             cudaMemcpyHostToDevice, CudaDevice::Native(stream)));
  }

  void ArmFault(Fault fault) override {
    fault.call += faulty_->CallCount(fault.kind);
    faulty_->Inject(std::move(fault));
  }
  void DisarmFaults() override { faulty_->ClearFaults(); }
  uint64_t faults_fired() const override { return faulty_->FaultCount(); }

  Expected<void> RunTasks(std::vector<std::function<void()>> tasks) override {
    baton_.Run(tasks);
    return {};
  }
  void Yield() override { baton_.Pass(); }
  void BeginOperation(size_t) override { baton_.Pass(); }
  void Calm() override {}

  std::string Hazards() const override { return {}; }
  // Not known here: the simulated device's run of the same plans counts it.
  uint64_t PinnedBytesOwned() const override { return 0; }
  std::string Timeline() const override { return {}; }
  uint64_t TraceHash() const override { return 0; }

 private:
  struct Reading {
    std::shared_ptr<Bytes> into;
    std::span<const uint8_t> bytes;
  };

  const std::shared_ptr<CudaDevice> cuda_;
  const std::shared_ptr<FaultyDevice> faulty_;
  conformance::StreamGate gate_;
  std::vector<cudaStream_t> streams_;
  std::vector<Reading> readings_;
  Baton baton_;
};

}  // namespace

std::unique_ptr<PlanHarness> MakeCudaPlanHarness(std::shared_ptr<CudaDevice> device) {
  return std::make_unique<CudaPlanHarness>(std::move(device));
}

}  // namespace h2d::testing
