#include "h2d/device/conformance/fake_harness.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "h2d/device/fake/fake_device.h"

namespace h2d::conformance {
namespace {

class SimulatedGraph final : public Graph {
 public:
  explicit SimulatedGraph(FakeGraph graph) : graph_(graph) {}
  const FakeGraph& graph() const { return graph_; }

 private:
  FakeGraph graph_;
};

class FakeHarness final : public Harness {
 public:
  explicit FakeHarness(FakeOptions options) : device_(FakeDevice::Create(std::move(options))) {}

  void set_second(std::unique_ptr<FakeHarness> second) { second_ = std::move(second); }

  std::shared_ptr<Device> device() override { return device_; }
  Harness* Second() override { return second_.get(); }

  Expected<DevicePtr> AllocateDevice(uint64_t bytes) override {
    return device_->AllocateDevice(bytes);
  }
  Expected<std::vector<std::byte>> ReadBack(DevicePtr ptr, uint64_t bytes,
                                            const Stream& stream) override {
    std::vector<std::byte> read(bytes);
    if (Expected<void> ok = device_->ReadBack(ptr, read, stream); !ok) return ErrorOf(ok);
    return read;
  }
  Expected<void> Fill(DevicePtr ptr, std::byte value, uint64_t bytes,
                      const Stream& stream) override {
    KernelSpec kernel;
    kernel.name = "fill";
    kernel.writes = {{ptr, bytes}};
    kernel.run = [=](const KernelMemory& memory) {
      std::ranges::fill(memory.Write(ptr, bytes), value);
    };
    return device_->Launch(stream, std::move(kernel));
  }

  Expected<Stream> NewStream(StreamFlavor flavor) override {
    return device_->NewStream(
        {}, flavor == StreamFlavor::kBlocking ? StreamFlags::kBlocking : StreamFlags::kNonBlocking);
  }
  Expected<void> DestroyStream(const Stream& stream) override {
    return device_->DestroyStream(stream);
  }
  Stream LegacyStream() override { return device_->LegacyStream(); }
  Stream PerThreadStream() override { return device_->PerThreadStream(); }
  Expected<void> Hold(const Stream& stream) override {
    Expected<void> ok = device_->Hold(stream);
    if (ok) held_.push_back(stream);
    return ok;
  }
  Expected<void> Release(const Stream& stream) override {
    std::erase_if(held_, [&](const Stream& held) { return held.id() == stream.id(); });
    return device_->Release(stream);
  }
  Expected<void> Synchronize(const Stream& stream) override {
    return device_->SynchronizeStream(stream);
  }
  void Quiesce() override {
    if (second_ != nullptr) second_->Quiesce();
    for (const Stream& stream : std::exchange(held_, {})) Note(device_->Release(stream));
    Note(device_->SynchronizeDevice());
  }

  Expected<void> BeginCapture(const Stream& stream, CaptureMode mode) override {
    return device_->BeginCapture(stream, FakeMode(mode));
  }
  Expected<void> InvalidateCapture(const Stream& stream) override {
    if (device_->SynchronizeStream(stream)) {
      return FailedPrecondition("The capture survived the synchronization of its stream.");
    }
    return {};
  }
  Expected<std::unique_ptr<Graph>> EndCapture(const Stream& stream) override {
    Expected<FakeGraph> graph = device_->EndCapture(stream);
    if (!graph) return ErrorOf(graph);
    return std::make_unique<SimulatedGraph>(*graph);
  }
  Expected<void> Replay(Graph& graph, const Stream& stream) override {
    return device_->LaunchGraph(static_cast<SimulatedGraph&>(graph).graph(), stream);
  }

  void ExpectMisuse() override { misuse_expected_ = true; }
  std::string Complaints() override {
    std::string complaints = std::exchange(complaints_, {});
    if (second_ != nullptr) complaints += second_->Complaints();
    if (misuse_expected_) return complaints;
    for (const Hazard& hazard : device_->hazards()) complaints += hazard.ToString() + "\n";
    return complaints;
  }

 private:
  static h2d::CaptureMode FakeMode(CaptureMode mode) {
    switch (mode) {
      case CaptureMode::kGlobal:
        return h2d::CaptureMode::kGlobal;
      case CaptureMode::kThreadLocal:
        return h2d::CaptureMode::kThreadLocal;
      case CaptureMode::kRelaxed:
        break;
    }
    return h2d::CaptureMode::kRelaxed;
  }

  void Note(const Expected<void>& ok) {
    if (!ok) complaints_ += ok.error().ToString() + "\n";
  }

  const std::shared_ptr<FakeDevice> device_;
  std::vector<Stream> held_;
  bool misuse_expected_ = false;
  std::string complaints_;
  std::unique_ptr<FakeHarness> second_;
};

}  // namespace

std::unique_ptr<Harness> MakeFakeHarness(std::shared_ptr<ChoiceSource> choices,
                                         ChoiceSites adversaries) {
  FakeOptions options;
  options.choices = std::move(choices);
  options.adversaries = adversaries;
  options.os_threads = true;
  options.poison_sources = false;  // what a store into a source in flight does is what is asked
  auto harness = std::make_unique<FakeHarness>(options);
  FakeOptions second;
  second.os_threads = true;
  harness->set_second(std::make_unique<FakeHarness>(second));
  return harness;
}

}  // namespace h2d::conformance
