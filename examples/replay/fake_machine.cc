#include "h2d/examples/replay/fake_machine.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "h2d/device/fake/choice.h"
#include "h2d/device/fake/fake_device.h"

namespace h2d::replay {
namespace {

// A few steps: what a person reads.
constexpr size_t kTimelineRecords = 120;
constexpr size_t kShownHazards = 3;

FakeOptions OptionsFor(uint64_t seed) {
  FakeOptions options;
  options.choices = std::make_shared<HashChoices>(seed);
  options.adversaries = ChoiceSites::None()
                            .With(ChoiceSite::kSourceRead)
                            .With(ChoiceSite::kTornChunk)
                            .With(ChoiceSite::kSeenLate)
                            .With(ChoiceSite::kWaitAnswer);
  options.max_trace_records = kTimelineRecords;
  return options;
}

DeviceRange RangeOf(const Destination& place) {
  return {place.ptr, place.count * place.element_bytes};
}

// What the graph's one kernel does: reads its inputs.
void TakeSnapshot(const KernelMemory& memory, std::span<const DeviceRange> reads,
                  std::span<std::byte> snapshot) {
  for (const DeviceRange& range : reads) {
    // A range that the device does not have reads as no bytes; what is missing is a mismatch.
    const std::span<const std::byte> bytes = memory.Read(range.ptr, range.bytes);
    if (!bytes.empty()) std::memcpy(snapshot.data(), bytes.data(), bytes.size());
    snapshot = snapshot.subspan(range.bytes);
  }
}

class FakeMachine final : public Machine {
 public:
  explicit FakeMachine(uint64_t seed)
      : fake_(FakeDevice::Create(OptionsFor(seed))), device_(fake_) {}

  std::string_view name() const override { return "the simulated device"; }
  const std::shared_ptr<Device>& device() override { return device_; }

  Expected<DevicePtr> AllocateDevice(uint64_t bytes, std::string_view name) override {
    return fake_->AllocateDevice(bytes, name);
  }
  Expected<std::span<std::byte>> AllocateSnapshot(uint64_t bytes) override {
    snapshots_.push_back(std::make_unique<std::byte[]>(bytes));
    return std::span<std::byte>(snapshots_.back().get(), bytes);
  }
  Expected<Stream> NewStream(std::string_view name) override { return fake_->NewStream(name); }

  Expected<void> LaunchGraph(const Stream& stream, const StepGraph& graph,
                             std::span<std::byte> snapshot,
                             std::chrono::nanoseconds duration) override {
    // Choices are counted anew for each step.
    fake_->BeginOperation(++launches_);
    KernelSpec kernel;
    kernel.name = "graph";
    for (const Destination& read : graph.reads) kernel.reads.push_back(RangeOf(read));
    if (graph.clears) kernel.writes.push_back(RangeOf(*graph.clears));
    kernel.duration = duration;
    kernel.run = [reads = kernel.reads, writes = kernel.writes,
                  snapshot](const KernelMemory& memory) {
      TakeSnapshot(memory, reads, snapshot);
      for (const DeviceRange& range : writes) {
        const std::span<std::byte> bytes = memory.Write(range.ptr, range.bytes);
        std::fill(bytes.begin(), bytes.end(), std::byte{0});
      }
    };
    return fake_->Launch(stream, std::move(kernel));
  }

  bool has_simulated_time() const override { return true; }
  uint64_t hazards() const override { return fake_->hazard_count(); }

  std::string Explain() const override {
    std::string text;
    const std::vector<Hazard> hazards = fake_->hazards();
    for (size_t i = 0; i < std::min(hazards.size(), kShownHazards); ++i) {
      text += "hazard " + std::to_string(i + 1) + " of " + std::to_string(hazards.size()) + ":\n" +
              hazards[i].ToString() + "\n";
    }
    return text + "The device's last operations:\n" + fake_->Timeline();
  }

 private:
  std::shared_ptr<FakeDevice> fake_;
  std::shared_ptr<Device> device_;
  std::vector<std::unique_ptr<std::byte[]>> snapshots_;
  uint64_t launches_ = 0;
};

}  // namespace

std::unique_ptr<Machine> NewFakeMachine(uint64_t seed) {
  return std::make_unique<FakeMachine>(seed);
}

}  // namespace h2d::replay
