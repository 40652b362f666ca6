#include "h2d/tests/support/fake_harness.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "h2d/device/fake/fake_device.h"
#include "h2d/device/fake/host_tasks.h"
#include "h2d/device/faulty/faulty_device.h"
#include "h2d/tests/support/plan_choices.h"

namespace h2d::testing {
namespace {

// Stuck streams are operations of plans (`OpKind::kHold`), which are released before the end.
ChoiceSites SitesOf(const Plan& plan) {
  ChoiceSites sites = ChoiceSites::None();
  for (uint32_t i = 0; i < kChoiceSites; ++i) {
    if ((plan.header.adversary_bits() >> i & 1) != 0) {
      sites = sites.With(static_cast<ChoiceSite>(i));
    }
  }
  return sites.Without(ChoiceSite::kStuck).Without(ChoiceSite::kConfidential);
}

// Of the plans whose enqueues may block, one in four.
bool IsConfidential(const Plan& plan, ChoiceSites sites) {
  return sites.contains(ChoiceSite::kEnqueueBlocks) && plan.header.adversary_bits() >> 14 == 3;
}

FakeOptions OptionsOf(const FakeHarnessOptions& options, std::shared_ptr<ChoiceSource> choices,
                      ChoiceSites sites, bool confidential) {
  FakeOptions fake;
  fake.choices = std::move(choices);
  fake.adversaries = sites;
  fake.confidential_computing = confidential;
  fake.detect_hazards = options.detect_hazards;
  fake.keep_trace = options.keep_trace;
  return fake;
}

class FakeHarness final : public PlanHarness {
 public:
  FakeHarness(const Plan& plan, const FakeHarnessOptions& options)
      : sites_(SitesOf(plan)),
        choices_(std::make_shared<PlanChoices>(plan)),
        answers_(options.keep_trace ? std::make_shared<RecordingChoices>(choices_) : nullptr),
        fake_(FakeDevice::Create(
            OptionsOf(options, answers_ ? std::shared_ptr<ChoiceSource>(answers_) : choices_,
                      sites_, IsConfidential(plan, sites_)))),
        faulty_(FaultyDevice::Create(fake_)) {}

  std::shared_ptr<Device> device() override { return faulty_; }
  Device& callers_device() override { return *fake_; }

  Expected<DevicePtr> Allocate(const Bytes& initial, std::string_view name) override {
    Expected<DevicePtr> memory = fake_->AllocateDevice(initial.size(), name);
    if (!memory) return memory;
    const Expected<void> written = fake_->Poke(*memory, std::as_bytes(std::span(initial)));
    if (!written) return Unexpected(written.error());
    return memory;
  }

  Expected<Stream> NewStream(std::string_view name) override { return fake_->NewStream(name); }
  Stream LegacyStream() override { return fake_->LegacyStream(); }
  Expected<void> DestroyStream(const Stream& stream) override {
    return fake_->DestroyStream(stream);
  }
  // An enqueue that blocks until a held stream has carried it out would wait for ever.
  bool CanHold() const override { return !sites_.contains(ChoiceSite::kEnqueueBlocks); }
  Expected<void> Hold(const Stream& stream) override { return fake_->Hold(stream); }
  Expected<void> Release(const Stream& stream) override { return fake_->Release(stream); }
  Expected<void> CompleteNext(const Stream& stream) override {
    Expected<bool> completed = fake_->CompleteNext(stream);
    if (!completed) return ErrorOf(completed);
    return {};
  }
  void Advance(std::chrono::nanoseconds duration) override { fake_->AdvanceTime(duration); }
  size_t Finish() override { return fake_->RunUntilIdle(); }

  Expected<void> BeginCapture(const Stream& stream, uint32_t mode) override {
    return fake_->BeginCapture(stream, static_cast<CaptureMode>(mode % 3));
  }
  Expected<size_t> EndCapture(const Stream& stream) override {
    Expected<FakeGraph> graph = fake_->EndCapture(stream);
    if (!graph) return ErrorOf(graph);
    return graph->operations();
  }

  Expected<void> LaunchRead(const Stream& stream, DevicePtr from, size_t bytes,
                            std::shared_ptr<Bytes> into) override {
    KernelSpec kernel;
    kernel.name = "read";
    kernel.reads = {{from, bytes}};
    kernel.run = [from, bytes, into = std::move(into)](const KernelMemory& memory) {
      for (const std::byte byte : memory.Read(from, bytes)) {
        into->push_back(static_cast<uint8_t>(byte));
      }
    };
    return fake_->Launch(stream, std::move(kernel));
  }
  Expected<void> LaunchWrite(const Stream& stream, DevicePtr to, Bytes bytes) override {
    KernelSpec kernel;
    kernel.name = "write";
    kernel.writes = {{to, bytes.size()}};
    kernel.run = [to, bytes = std::move(bytes)](const KernelMemory& memory) {
      const std::span<std::byte> out = memory.Write(to, bytes.size());
      std::ranges::copy(std::as_bytes(std::span(bytes)), out.begin());
    };
    return fake_->Launch(stream, std::move(kernel));
  }

  void ArmFault(Fault fault) override {
    fault.call += faulty_->CallCount(fault.kind);
    faulty_->Inject(std::move(fault));
  }
  void DisarmFaults() override { faulty_->ClearFaults(); }
  uint64_t faults_fired() const override { return faulty_->FaultCount(); }

  Expected<void> RunTasks(std::vector<std::function<void()>> tasks) override {
    return h2d::RunTasks(*fake_, std::move(tasks));
  }
  void Yield() override {
    static_cast<void>(fake_->WaitAny({}, {.timeout = std::chrono::microseconds(1)}));
  }
  void BeginOperation(size_t index) override { fake_->BeginOperation(index); }
  void Calm() override { choices_->Calm(); }

  std::string Hazards() const override {
    std::string text;
    for (const Hazard& hazard : fake_->hazards()) text += hazard.ToString() + "\n";
    return text;
  }
  uint64_t PinnedBytesOwned() const override {
    const FakeCounters counters = fake_->counters();
    return counters.pinned_bytes - counters.pinned_cached_bytes;
  }
  std::string Timeline() const override { return Answers() + fake_->Timeline(); }
  uint64_t TraceHash() const override { return fake_->TraceHash(); }

 private:
  // What an unkind device answered, which the bytes of a plan do not tell a person.
  std::string Answers() const {
    constexpr int kMostLines = 40;
    std::string text;
    int lines = 0;
    for (const auto& [point, n, answer] : answers_ ? answers_->choices() : kNoChoices) {
      if (answer == 0) continue;
      if (lines++ == kMostLines) return text + "  ...\n";
      text += "  operation " + std::to_string(point.operation) + ", " +
              std::string(ToString(point.site)) + ": answer = " + std::to_string(answer) +
              " of 0 to " + std::to_string(n - 1) + "\n";
    }
    return text;
  }

  inline static const std::vector<RecordingChoices::Choice> kNoChoices;

  const ChoiceSites sites_;
  std::shared_ptr<PlanChoices> choices_;
  std::shared_ptr<RecordingChoices> answers_;  // null unless the trace is kept
  std::shared_ptr<FakeDevice> fake_;
  std::shared_ptr<FaultyDevice> faulty_;
};

}  // namespace

std::unique_ptr<PlanHarness> MakeFakeHarness(const Plan& plan, const FakeHarnessOptions& options) {
  return std::make_unique<FakeHarness>(plan, options);
}

}  // namespace h2d::testing
