// How many operations a second the simulated device carries out on one core: it bounds how many
// random plans a test run can afford.
#include <benchmark/benchmark.h>
#include <malloc.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "h2d/device/fake/fake_device.h"

namespace h2d {
namespace {

constexpr uint64_t kSlotBytes = 256;

// A careful user of the device: a ring of slots for each stream, each with its event and its
// destination; a slot is written again only after its completion was observed.
class Ring {
 public:
  Ring(const std::shared_ptr<FakeDevice>& device, size_t streams, size_t slots)
      : device_(device), wanted_(slots) {
    for (size_t i = 0; i < streams; ++i) streams_.push_back(device_->NewStream());
    for (size_t i = 0; i < slots; ++i) {
      auto memory = device_->AllocatePinned(kSlotBytes);
      auto event = device_->CreateEvent();
      auto there = device_->AllocateDevice(kSlotBytes);
      if (!memory || !event || !there) return;
      slots_.push_back({std::move(*memory), std::move(*event), *there});
    }
  }

  // Each answers whether all calls succeeded.
  bool Round() { return Enqueue() && Wait(); }

  // Every slot is written, copied, recorded, and waited for by the next stream.
  bool Enqueue() {
    bool ok = slots_.size() == wanted_;
    for (size_t i = 0; i < slots_.size(); ++i) {
      Slot& slot = slots_[i];
      const Stream& stream = streams_[i % streams_.size()];
      device_->OnHostAccess(slot.memory.bytes(), HostAccess::kWrite);
      slot.memory.bytes()[0] = static_cast<std::byte>(round_);
      ok = ok && device_->CopyAsync(slot.there, slot.memory.bytes(), stream) &&
           device_->Record(slot.event, stream) &&
           device_->WaitEvent(streams_[(i + 1) % streams_.size()], slot.event);
    }
    ++round_;
    return ok;
  }

  // The host waits for all of them.
  bool Wait() {
    bool ok = true;
    for (const Slot& slot : slots_) {
      const Event* const event = &slot.event;
      const auto complete = device_->WaitAny({&event, 1}, {.timeout = std::chrono::hours(1)});
      ok = ok && complete && complete->has_value();
    }
    return ok;
  }

 private:
  struct Slot {
    PinnedBuffer memory;
    Event event;
    DevicePtr there;
  };

  std::shared_ptr<FakeDevice> device_;
  size_t wanted_;
  std::vector<Stream> streams_;
  std::vector<Slot> slots_;
  uint8_t round_ = 0;
};

// `operations/s` counts what was enqueued on streams: copies, records and stream waits. The calls
// that announce a write or wait on the host come on top and are not counted. `streams` and `copies`
// are how many are in flight at once, with as many records and waits beside them. More of them
// leave the processor's caches (1 to 2.5 kB each), so that an operation takes longer: without the
// detector 0.2 us with 640 copies in flight, 0.5 with 10,240 and 1 with 40,960. Over time nothing
// grows.
void Operations(benchmark::State& state, FakeOptions options, bool adversaries) {
  if (adversaries) options.choices = std::make_shared<HashChoices>(1);
  const std::shared_ptr<FakeDevice> device = FakeDevice::Create(options);
  Ring ring(device, static_cast<size_t>(state.range(0)), static_cast<size_t>(state.range(1)));
  const auto done = [&] {
    const FakeCounters counters = device->counters();
    return counters.copies + counters.records + counters.stream_waits;
  };
  if (!ring.Round()) return state.SkipWithError("A call failed.");  // fills caches, makes memory
  const uint64_t before = done();
  const size_t heap_before = mallinfo2().uordblks;
  for (auto _ : state) {
    if (!ring.Round()) return state.SkipWithError("A call failed.");
  }
  if (device->hazard_count() != 0) return state.SkipWithError("A hazard was reported.");
  state.counters["operations/s"] =
      benchmark::Counter(static_cast<double>(done() - before), benchmark::Counter::kIsRate);
  const size_t heap_after = mallinfo2().uordblks;
  state.counters["heap_growth_B/operation"] =
      (static_cast<double>(heap_after) - static_cast<double>(heap_before)) /
      static_cast<double>(done() - before);
}

// What a copy costs while it is in flight, with its record and the wait of another stream.
void HeapInFlight(benchmark::State& state, const FakeOptions& options) {
  const std::shared_ptr<FakeDevice> device = FakeDevice::Create(options);
  const auto copies = static_cast<size_t>(state.range(1));
  Ring ring(device, static_cast<size_t>(state.range(0)), copies);
  const size_t before = mallinfo2().uordblks;
  size_t after = before;
  for (auto _ : state) {
    if (!ring.Enqueue()) return state.SkipWithError("A call failed.");
    after = mallinfo2().uordblks;
    if (!ring.Wait()) return state.SkipWithError("A call failed.");
  }
  state.counters["heap_B/copy"] = static_cast<double>(after - before) / static_cast<double>(copies);
}

FakeOptions Options(bool detect_hazards, bool keep_trace = false) {
  FakeOptions options;
  options.detect_hazards = detect_hazards;
  options.keep_trace = keep_trace;
  return options;
}

void FewAndMany(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"streams", "copies"})->Args({3, 24});
  for (const int copies : {640, 2560, 10240, 40960}) benchmark->Args({64, copies});
}

BENCHMARK_CAPTURE(Operations, kindest_without_detector, Options(false), false)->Apply(FewAndMany);
BENCHMARK_CAPTURE(Operations, kindest_with_detector, Options(true), false)->Apply(FewAndMany);
BENCHMARK_CAPTURE(Operations, adversaries_without_detector, Options(false), true)
    ->Apply(FewAndMany);
BENCHMARK_CAPTURE(Operations, adversaries_with_detector, Options(true), true)->Apply(FewAndMany);
BENCHMARK_CAPTURE(Operations, adversaries_with_detector_and_trace, Options(true, true), true)
    ->Apply(FewAndMany);
BENCHMARK_CAPTURE(HeapInFlight, without_detector, Options(false))
    ->ArgNames({"streams", "copies"})
    ->Args({64, 10240})
    ->Iterations(1);
BENCHMARK_CAPTURE(HeapInFlight, with_detector, Options(true))
    ->ArgNames({"streams", "copies"})
    ->Args({64, 10240})
    ->Iterations(1);

}  // namespace
}  // namespace h2d
