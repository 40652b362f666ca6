#include "h2d/tests/cuda/cuda_plan_harness.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "h2d/device/cuda/engine/cuda_graph.h"
#include "h2d/device/cuda/engine/cuda_memory.h"
#include "h2d/device/cuda/engine/cuda_stream.h"
#include "h2d/device/cuda/testing/stream_gate.h"
#include "h2d/device/faulty/faulty_device.h"
#include "h2d/tests/cuda/baton.h"

namespace h2d::testing {
namespace {

// Memory for one plan at a time, handed out from one allocation: allocating may wait for streams,
// and plans hold some.
template <class Address>
class Arena {
 public:
  static constexpr uint64_t kBytes = 16 << 20;

  explicit Arena(Address base) : base_(base) {}

  void Reset() { used_ = 0; }
  Expected<Address> Take(uint64_t bytes) {
    const uint64_t block = (bytes + 255) / 256 * 256;
    if (block > kBytes - used_) return ResourceExhausted("The plan's memory is used up.");
    return base_ + std::exchange(used_, used_ + block);
  }

 private:
  Address base_;
  uint64_t used_ = 0;
};

// What every plan of the process uses again.
struct Memory {
  CudaMemory device_memory;
  PinnedBuffer pinned_memory;
  Arena<DevicePtr> device{device_memory.ptr()};
  Arena<std::byte*> pinned{pinned_memory.bytes().data()};

  static const Expected<Memory*>& OfProcess(CudaDevice& device) {
    static const auto* const memory = new Expected<Memory*>(Make(device));
    return *memory;
  }

 private:
  static Expected<Memory*> Make(CudaDevice& device) {
    constexpr uint64_t kBytes = Arena<DevicePtr>::kBytes;
    Expected<CudaMemory> device_memory = CudaMemory::Allocate(device, kBytes);
    if (!device_memory) return ErrorOf(device_memory);
    Expected<PinnedBuffer> pinned_memory = device.AllocatePinned(kBytes);
    if (!pinned_memory) return ErrorOf(pinned_memory);
    return new Memory{*std::move(device_memory), *std::move(pinned_memory)};
  }
};

class CudaPlanHarness final : public PlanHarness {
 public:
  CudaPlanHarness(std::shared_ptr<CudaDevice> device, Memory& memory)
      : cuda_(std::move(device)),
        faulty_(FaultyDevice::Create(cuda_)),
        memory_(memory),
        gate_(cuda_) {
    memory_.device.Reset();
    memory_.pinned.Reset();
  }

  ~CudaPlanHarness() override {
    gate_.OpenAll();
    static_cast<void>(SynchronizeDevice(*cuda_));
  }

  std::shared_ptr<Device> device() override { return faulty_; }
  Device& callers_device() override { return *cuda_; }

  Expected<DevicePtr> Allocate(const Bytes& initial, std::string_view) override {
    Expected<DevicePtr> memory = memory_.device.Take(initial.size());
    if (!memory) return memory;
    Expected<CudaStream> stream = CudaStream::Create(*cuda_);
    if (!stream) return ErrorOf(stream);
    Expected<void> ok = cuda_->CopyAsync(*memory, std::as_bytes(std::span(initial)), stream->get());
    if (ok) ok = Synchronize(*cuda_, stream->get());
    if (!ok) return ErrorOf(ok);
    return memory;
  }

  Expected<Stream> NewStream(std::string_view) override {
    Expected<CudaStream> stream = CudaStream::Create(*cuda_);
    if (!stream) return ErrorOf(stream);
    streams_.push_back(*std::move(stream));
    return streams_.back().get();
  }
  Stream LegacyStream() override { return cuda_->LegacyStream(); }
  Expected<void> DestroyStream(const Stream& stream) override {
    std::erase_if(streams_, [&](const CudaStream& own) {
      return own.native() == CudaDevice::Native(stream);
    });
    return {};
  }

  bool CanHold() const override { return true; }
  Expected<void> Hold(const Stream& stream) override { return gate_.Close(stream); }
  Expected<void> Release(const Stream& stream) override { return gate_.Open(stream); }
  Expected<void> CompleteNext(const Stream&) override { return {}; }
  void Advance(std::chrono::nanoseconds) override {}

  size_t Finish() override {
    if (!SynchronizeDevice(*cuda_)) return 1;
    for (Reading& reading : std::exchange(readings_, {})) {
      reading.into->assign(reading.bytes.begin(), reading.bytes.end());
    }
    return 0;
  }

  Expected<void> BeginCapture(const Stream& stream, uint32_t mode) override {
    constexpr CudaCaptureMode kModes[] = {CudaCaptureMode::kGlobal, CudaCaptureMode::kThreadLocal,
                                          CudaCaptureMode::kRelaxed};
    return h2d::BeginCapture(*cuda_, stream, kModes[mode % 3]);
  }
  Expected<size_t> EndCapture(const Stream& stream) override {
    Expected<CudaGraph> graph = CudaGraph::EndCapture(*cuda_, stream);
    if (!graph) return ErrorOf(graph);
    return graph->NodeCount();
  }

  Expected<void> LaunchRead(const Stream& stream, DevicePtr from, size_t bytes,
                            std::shared_ptr<Bytes> into) override {
    // Into pinned memory: a copy to pageable memory would wait for a held stream.
    Expected<std::byte*> landing = memory_.pinned.Take(bytes);
    if (!landing) return ErrorOf(landing);
    const auto* const landed = reinterpret_cast<const uint8_t*>(*landing);
    readings_.push_back({std::move(into), {landed, bytes}});
    return CopyToHostAsync(*cuda_, {*landing, bytes}, from, stream);
  }
  Expected<void> LaunchWrite(const Stream& stream, DevicePtr to, Bytes bytes) override {
    Expected<std::byte*> source = memory_.pinned.Take(bytes.size());
    if (!source) return ErrorOf(source);
    std::memcpy(*source, bytes.data(), bytes.size());
    return cuda_->CopyAsync(to, {*source, bytes.size()}, stream);
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
  Memory& memory_;
  std::vector<CudaStream> streams_;
  conformance::StreamGate gate_;
  std::vector<Reading> readings_;
  Baton baton_;
};

}  // namespace

Expected<std::unique_ptr<PlanHarness>> MakeCudaPlanHarness(std::shared_ptr<CudaDevice> device) {
  const Expected<Memory*>& memory = Memory::OfProcess(*device);
  if (!memory) return Unexpected(memory.error());
  return std::make_unique<CudaPlanHarness>(std::move(device), **memory);
}

}  // namespace h2d::testing
