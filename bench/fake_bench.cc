// How many operations a second the simulated device carries out on one core: it bounds how many
// random plans a test run can afford.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "h2d/device/fake/fake_device.h"

namespace h2d {
namespace {

constexpr int kStreams = 3;
constexpr int kSlotsPerStream = 8;
constexpr uint64_t kSlotBytes = 256;

// A careful user of the device: a ring of slots for each stream, each with its event and its
// destination; a slot is written again only after its completion was observed.
class Ring {
 public:
  explicit Ring(const std::shared_ptr<FakeDevice>& device) : device_(device) {
    for (int i = 0; i < kStreams; ++i) streams_.push_back(device_->NewStream());
    for (int i = 0; i < kStreams * kSlotsPerStream; ++i) {
      auto memory = device_->AllocatePinned(kSlotBytes);
      auto event = device_->CreateEvent();
      auto there = device_->AllocateDevice(kSlotBytes);
      if (!memory || !event || !there) return;
      slots_.push_back({std::move(*memory), std::move(*event), *there});
    }
  }

  // Every slot is written, copied, recorded, and waited for by the next stream; then the host waits
  // for all of them. Answers whether all calls succeeded.
  bool Round() {
    bool ok = slots_.size() == static_cast<size_t>(kStreams * kSlotsPerStream);
    for (size_t i = 0; i < slots_.size(); ++i) {
      Slot& slot = slots_[i];
      const Stream& stream = streams_[i % kStreams];
      device_->OnHostAccess(slot.memory.bytes(), HostAccess::kWrite);
      slot.memory.bytes()[0] = static_cast<std::byte>(round_);
      ok = ok && device_->CopyAsync(slot.there, slot.memory.bytes(), stream) &&
           device_->Record(slot.event, stream) &&
           device_->WaitEvent(streams_[(i + 1) % kStreams], slot.event);
    }
    for (const Slot& slot : slots_) {
      const Event* const event = &slot.event;
      const auto complete = device_->WaitAny({&event, 1}, {.timeout = std::chrono::hours(1)});
      ok = ok && complete && complete->has_value();
    }
    ++round_;
    return ok;
  }

 private:
  struct Slot {
    PinnedBuffer memory;
    Event event;
    DevicePtr there;
  };

  std::shared_ptr<FakeDevice> device_;
  std::vector<Stream> streams_;
  std::vector<Slot> slots_;
  uint8_t round_ = 0;
};

// `operations/s` counts what was enqueued on streams: copies, records and stream waits. The calls
// that announce a write or wait on the host come on top and are not counted.
void Operations(benchmark::State& state, const FakeOptions& options) {
  const std::shared_ptr<FakeDevice> device = FakeDevice::Create(options);
  Ring ring(device);
  for (auto _ : state) {
    if (!ring.Round()) return state.SkipWithError("A call failed.");
  }
  if (device->hazard_count() != 0) return state.SkipWithError("A hazard was reported.");
  const FakeCounters done = device->counters();
  state.counters["operations/s"] =
      benchmark::Counter(static_cast<double>(done.copies + done.records + done.stream_waits),
                         benchmark::Counter::kIsRate);
}

FakeOptions Options(bool detect_hazards, bool adversaries, bool keep_trace) {
  FakeOptions options;
  options.detect_hazards = detect_hazards;
  options.keep_trace = keep_trace;
  if (adversaries) options.choices = std::make_shared<HashChoices>(1);
  return options;
}

BENCHMARK_CAPTURE(Operations, kindest_without_detector, Options(false, false, false));
BENCHMARK_CAPTURE(Operations, kindest_with_detector, Options(true, false, false));
BENCHMARK_CAPTURE(Operations, adversaries_without_detector, Options(false, true, false));
BENCHMARK_CAPTURE(Operations, adversaries_with_detector, Options(true, true, false));
BENCHMARK_CAPTURE(Operations, adversaries_with_detector_and_trace, Options(true, true, true));

}  // namespace
}  // namespace h2d
