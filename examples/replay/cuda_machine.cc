#include "h2d/examples/replay/cuda_machine.h"

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "h2d/device/cuda/cuda_device.h"
#include "h2d/device/cuda/engine/cuda_graph.h"
#include "h2d/device/cuda/engine/cuda_kernel.h"
#include "h2d/device/cuda/engine/cuda_memory.h"
#include "h2d/device/cuda/engine/cuda_stream.h"

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

class CudaMachine final : public Machine {
 public:
  static Expected<std::unique_ptr<Machine>> Create() {
    Expected<std::shared_ptr<CudaDevice>> device = CudaDevice::Create(0);
    if (!device) return ErrorOf(device);
    Expected<CudaKernel> occupy = CudaKernel::Load(**device, kOccupy, "occupy");
    if (!occupy) return ErrorOf(occupy);
    Expected<CudaStream> stream = CudaStream::Create(**device);
    if (!stream) return ErrorOf(stream);
    return std::unique_ptr<Machine>(
        new CudaMachine(*std::move(device), *std::move(occupy), *std::move(stream)));
  }

  ~CudaMachine() override { static_cast<void>(SynchronizeDevice(*cuda_)); }

  std::string_view name() const override { return name_; }
  const std::shared_ptr<Device>& device() override { return device_; }

  Expected<DevicePtr> AllocateDevice(uint64_t bytes, std::string_view) override {
    Expected<CudaMemory> memory = CudaMemory::Allocate(*cuda_, bytes);
    if (!memory) return ErrorOf(memory);
    const DevicePtr ptr = memory->ptr();
    device_memory_.push_back(*std::move(memory));
    Expected<void> ok = FillAsync(*cuda_, ptr, std::byte{0}, bytes, own_stream_.get());
    if (ok) ok = Synchronize(*cuda_, own_stream_.get());
    if (!ok) return ErrorOf(ok);
    return ptr;
  }

  Expected<std::span<std::byte>> AllocateSnapshot(uint64_t bytes) override {
    Expected<PinnedBuffer> memory = cuda_->AllocatePinned(bytes);
    if (!memory) return ErrorOf(memory);
    host_memory_.push_back(*std::move(memory));
    return host_memory_.back().bytes();
  }

  Expected<Stream> NewStream(std::string_view) override {
    Expected<CudaStream> stream = CudaStream::Create(*cuda_);
    if (!stream) return ErrorOf(stream);
    streams_.push_back(*std::move(stream));
    return streams_.back().get();
  }

  Expected<void> LaunchGraph(const Stream& stream, const StepGraph& step,
                             std::span<std::byte> snapshot,
                             std::chrono::nanoseconds duration) override {
    Expected<const CudaExecutableGraph*> graph = Captured(step, snapshot);
    if (!graph) return ErrorOf(graph);
    auto nanoseconds = static_cast<uint64_t>(duration.count() / kTimesAsFast);
    std::array<void*, 1> arguments = {&nanoseconds};
    Expected<void> ok = occupy_.Launch(stream, /*blocks=*/1, /*threads=*/1, arguments);
    return ok ? (*graph)->Launch(stream) : ok;
  }

 private:
  // The snapshot, what the graph clears, or 0, and then each destination that it reads and its
  // size.
  using GraphKey = std::vector<uint64_t>;

  CudaMachine(std::shared_ptr<CudaDevice> device, CudaKernel occupy, CudaStream own_stream)
      : cuda_(std::move(device)),
        device_(cuda_),
        name_(cuda_->name()),
        occupy_(std::move(occupy)),
        own_stream_(std::move(own_stream)) {}

  // Captures `step` when it is first met.
  Expected<const CudaExecutableGraph*> Captured(const StepGraph& step,
                                                std::span<std::byte> snapshot) {
    GraphKey key = {reinterpret_cast<uintptr_t>(snapshot.data()),
                    step.clears ? step.clears->ptr.address() : 0};
    for (const Destination& read : step.reads) {
      key.push_back(read.ptr.address());
      key.push_back(read.count * read.element_bytes);
    }
    if (const auto found = graphs_.find(key); found != graphs_.end()) return &found->second;
    Expected<CudaExecutableGraph> graph = CaptureGraph(step, snapshot);
    if (!graph) return ErrorOf(graph);
    return &graphs_.emplace(std::move(key), *std::move(graph)).first->second;
  }

  Expected<CudaExecutableGraph> CaptureGraph(const StepGraph& step, std::span<std::byte> snapshot) {
    const Stream& stream = own_stream_.get();
    Expected<void> ok = BeginCapture(*cuda_, stream, CudaCaptureMode::kGlobal);
    if (!ok) return ErrorOf(ok);
    for (const Destination& read : step.reads) {
      const uint64_t bytes = read.count * read.element_bytes;
      if (ok && bytes > 0) ok = CopyToHostAsync(*cuda_, snapshot.first(bytes), read.ptr, stream);
      snapshot = snapshot.subspan(bytes);
    }
    if (const std::optional<Destination>& place = step.clears; ok && place) {
      ok = FillAsync(*cuda_, place->ptr, std::byte{0}, place->count * place->element_bytes, stream);
    }
    Expected<CudaGraph> captured = CudaGraph::EndCapture(*cuda_, stream);
    if (!ok) return ErrorOf(ok);
    if (!captured) return ErrorOf(captured);
    return captured->Instantiate();
  }

  std::shared_ptr<CudaDevice> cuda_;
  std::shared_ptr<Device> device_;
  std::string name_;
  CudaKernel occupy_;
  CudaStream own_stream_;  // captures, and zeroes memory
  std::map<GraphKey, CudaExecutableGraph> graphs_;
  std::vector<CudaStream> streams_;
  std::vector<CudaMemory> device_memory_;
  std::vector<PinnedBuffer> host_memory_;
};

}  // namespace

Expected<std::unique_ptr<Machine>> NewCudaMachine() { return CudaMachine::Create(); }

}  // namespace h2d::replay
