// What the stager costs on the host, beside what it cannot do without: the host device copies at
// once and for nothing, so all that remains is the stager's own work.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "h2d/bench/loop_times.h"
#include "h2d/device/host/host_device.h"
#include "h2d/stager/pinned_stager.h"

namespace h2d {
namespace {

// A stager on a host device, and values to bring to `destination`.
struct Bench {
  explicit Bench(uint64_t bytes)
      : values(bytes / sizeof(int32_t), 7), destination(values.size(), 0) {}

  // Makes the stager; answers what went wrong, or nothing.
  std::string Open() {
    auto made = PinnedStager::Create(device, {.slot_bytes = bytes().size(), .initial_slots = 8});
    if (!made) return made.error().ToString();
    stager = *std::move(made);
    return {};
  }
  Destination there() { return Destination::Of(destination.data(), destination.size()); }
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(values)); }

  std::vector<int32_t> values;
  std::vector<int32_t> destination;
  std::shared_ptr<HostDevice> host = HostDevice::Create();
  std::shared_ptr<Device> device = host;  // as users hold it: no call is resolved at compile time
  Stream stream = host->NewStream();
  std::unique_ptr<PinnedStager> stager;
};

// The ring that people write by hand: slots in turn, each with its event, and nothing that keeps a
// slot from being rewritten while a copy reads it.
class UnsafeRing {
 public:
  UnsafeRing(Bench& bench, int slots) : bench_(bench) {
    for (int i = 0; i < slots; ++i) {
      auto memory = bench.device->AllocatePinned(bench.bytes().size());
      auto event = bench.device->CreateEvent();
      if (memory && event) slots_.push_back({std::move(*memory), std::move(*event)});
    }
  }
  bool empty() const { return slots_.empty(); }

  // What no stager can do without: memcpy into a pinned slot, copy call, event record.
  bool Copy() {
    Slot& slot = slots_[next_];
    if (++next_ == slots_.size()) next_ = 0;
    const std::span<std::byte> memory = slot.memory.bytes();
    std::memcpy(memory.data(), bench_.values.data(), memory.size());
    const DevicePtr there(bench_.destination.data());
    return bench_.device->CopyAsync(there, memory, bench_.stream) &&
           bench_.device->Record(slot.event, bench_.stream);
  }

 private:
  struct Slot {
    PinnedBuffer memory;
    Event event;
  };
  Bench& bench_;
  std::vector<Slot> slots_;
  size_t next_ = 0;
};

// `Copy` without a mirror, beside
//   memcpy: the values to the destination, without any staging
//   raw: the unsafe ring, with as many slots as the stager has at first
void BM_Copy(benchmark::State& state) {
  const auto bytes = static_cast<uint64_t>(state.range(0));
  Bench bench(bytes);
  if (const std::string error = bench.Open(); !error.empty()) {
    return state.SkipWithError(error.c_str());
  }
  UnsafeRing ring(bench, 8);
  if (ring.empty()) return state.SkipWithError("The device gave no slot.");

  bool failed = false;
  const auto plain = [&] {
    std::memcpy(bench.destination.data(), bench.values.data(), bytes);
    benchmark::ClobberMemory();
  };
  const auto raw = [&] {
    failed |= !ring.Copy();
    benchmark::ClobberMemory();
  };
  const auto copy = [&] {
    failed |= !bench.stager->Copy(bench.there(), bench.values, bench.stream);
    benchmark::ClobberMemory();
  };
  LoopTimes plain_times(CallsPerLoop(bytes));
  LoopTimes raw_times(CallsPerLoop(bytes));
  LoopTimes copy_times(CallsPerLoop(bytes));
  for (auto _ : state) {
    plain_times.Add(plain);
    raw_times.Add(raw);
    state.SetIterationTime(copy_times.Add(copy) * 1e-9);
  }
  if (failed) return state.SkipWithError("A copy failed.");
  state.counters["memcpy_ns"] = plain_times.MedianNs();
  state.counters["raw_ns"] = raw_times.MedianNs();
  state.counters["copy_ns"] = copy_times.MedianNs();
  state.counters["copy/raw"] = copy_times.MedianNs() / raw_times.MedianNs();
  state.counters["copy-raw_ns"] = copy_times.MedianNs() - raw_times.MedianNs();
  state.counters["copy/memcpy"] = copy_times.MedianNs() / plain_times.MedianNs();
}

// A mirrored `Copy` of what the destination holds already, beside the memcmp that finds it out.
void BM_MirrorHit(benchmark::State& state) {
  const auto bytes = static_cast<uint64_t>(state.range(0));
  Bench bench(bytes);
  if (const std::string error = bench.Open(); !error.empty()) {
    return state.SkipWithError(error.c_str());
  }
  auto mirror = bench.stager->NewMirror(bench.there());
  if (!mirror || !bench.stager->Copy(*mirror, bench.values, bench.stream)) {
    return state.SkipWithError("The mirror could not be made or filled.");
  }

  bool missed = false;
  bool differed = false;
  const auto compare = [&] {
    benchmark::ClobberMemory();
    differed |= std::memcmp(bench.destination.data(), bench.values.data(), bytes) != 0;
  };
  const auto hit = [&] {
    benchmark::ClobberMemory();
    const auto outcome = bench.stager->Copy(*mirror, bench.values, bench.stream);
    missed |= !outcome || outcome->kind != CopyOutcome::Kind::kSkipped;
  };
  LoopTimes compare_times(CallsPerLoop(bytes));
  LoopTimes hit_times(CallsPerLoop(bytes));
  for (auto _ : state) {
    compare_times.Add(compare);
    state.SetIterationTime(hit_times.Add(hit) * 1e-9);
  }
  if (missed || differed) return state.SkipWithError("A copy was no hit.");
  state.counters["memcmp_ns"] = compare_times.MedianNs();
  state.counters["hit_ns"] = hit_times.MedianNs();
  state.counters["hit/memcmp"] = hit_times.MedianNs() / compare_times.MedianNs();
  state.counters["hit-memcmp_ns"] = hit_times.MedianNs() - compare_times.MedianNs();
}

void AllSizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgName("bytes")->RangeMultiplier(4)->Range(64, 1 << 20);
  benchmark->Iterations(31)->UseManualTime();
}
BENCHMARK(BM_Copy)->Apply(AllSizes);
BENCHMARK(BM_MirrorHit)->Apply(AllSizes);

}  // namespace
}  // namespace h2d
