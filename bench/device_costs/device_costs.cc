// What the CUDA backend and the stager cost beside the driver's own calls, on the machine at hand.
//
// Contenders take turns, loop by loop of 1,000 calls, and are compared by medians of 31; the
// stream is drained between loops. A growth behind a busy device is timed call by call.
//
//   bench/gpu/run costs
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "h2d/bench/device_costs/compare.h"
#include "h2d/bench/device_costs/rows.h"
#include "h2d/bench/device_costs/setting.h"
#include "h2d/bench/live_graph/cuda_check.h"
#include "h2d/bench/live_graph/graphs.h"
#include "h2d/bench/live_graph/nvrtc.h"
#include "h2d/device/cuda/cuda_device.h"
#include "h2d/stager/pinned_stager.h"

namespace h2d::bench {
namespace {

void CompareQuestions(Setting& s) {
  Must(s.device->Record(s.events[0], *s.stream));
  Check(cudaEventRecord(s.native_events[0], s.native), "A record");
  const Event* const only = &s.events[0];
  Compare("is a stream capturing, and which is it?",
          {{"cudaStreamIsCapturing",
            [&](uint64_t) {
              cudaStreamCaptureStatus status;
              Check(cudaStreamIsCapturing(s.native, &status), "is-capturing");
            }},
           {"Inspect", [&](uint64_t) { Must(s.device->Inspect(*s.stream)); }},
           {"Inspect of the legacy stream",
            [&](uint64_t) { Must(s.device->Inspect(s.device->LegacyStream())); }},
           {"Inspect of the per-thread stream",
            [&](uint64_t) { Must(s.device->Inspect(s.device->PerThreadStream())); }}});
  Compare(
      "is an event complete?",
      {{"cudaEventQuery", [&](uint64_t) { Check(cudaEventQuery(s.native_events[0]), "A query"); }},
       {"Query, under an exchanged capture mode",
        [&](uint64_t) { Must(s.device->Query(s.events[0])); }},
       {"WaitAny of one, complete",
        [&](uint64_t) { Must(s.device->WaitAny(std::span(&only, 1), {})); }}});
}

void CompareThreads(Setting& s) {
  const auto copy = [&](uint64_t n) {
    Must(s.device->CopyAsync(DevicePtr(s.There(n)), {s.Slot(n, 256), 256}, *s.stream));
  };
  Compare("CopyAsync of 256 B by a thread that uses the device", {{"CopyAsync", copy}});
  std::thread([&] {
    // No `Compare` here: its synchronization would give the thread a device.
    std::vector<double> ns;
    for (int loop = 0; loop < kLoops; ++loop) {
      const Clock::time_point start = Clock::now();
      for (uint64_t n = 0; n < 1000; ++n) copy(n);
      ns.push_back(NsSince(start) / 1000);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    std::printf("CopyAsync of 256 B by a thread without a device\n  %-52s %9.1f ns\n", "CopyAsync",
                Quantile(ns, 0.5));
  }).join();
}

void CompareBatches(Setting& s) {
  std::array<CopyEntry, 16> entries;
  for (uint64_t i = 0; i < entries.size(); ++i) {
    entries[i] = {DevicePtr(s.There(i)), {s.Slot(i, 1024), 1024}};
  }
  Compare(
      "16 tensors of 1 KiB, pinned already, in the backend",
      {{"one copy of 16 KiB",
        [&](uint64_t n) {
          Must(s.device->CopyAsync(DevicePtr(s.There(n)), {s.Slot(n, 16 << 10), 16 << 10},
                                   *s.stream));
        }},
       {"16 copies",
        [&](uint64_t) {
          for (const CopyEntry& entry : entries) {
            Must(s.device->CopyAsync(entry.destination, entry.source, *s.stream));
          }
        }},
       {"one batch of 16", [&](uint64_t) { Must(s.device->CopyBatchAsync(entries, *s.stream)); }}},
      50);
}

void CompareAllocations(Setting& s) {
  Compare(
      "64 KiB of pinned memory",
      {{"AllocatePinned and release, from the cache",
        [&](uint64_t) { const PinnedBuffer buffer = Must(s.device->AllocatePinned(64 << 10)); }},
       {"the same of 1 MiB",
        [&](uint64_t) { const PinnedBuffer buffer = Must(s.device->AllocatePinned(1 << 20)); }}});
}

// Every call takes a slot and none comes back: the ring grows while the device is busy.
void TimeGrowth(Setting& s, const Kernels& kernels) {
  void* out = s.memory;
  int rounds = 12'000'000;  // about 24 ms at 2 GHz
  void* arguments[] = {&out, &rounds};
  Check(cudaLaunchKernel(kernels.Find("multiply"), dim3(1), dim3(32), arguments, 0, s.native),
        "Launching multiply");
  constexpr uint64_t kBytes = 64 << 10;
  const std::shared_ptr<PinnedStager> stager =
      Must(PinnedStager::Create(s.device, {.slot_bytes = kBytes,
                                           .initial_slots = 1,
                                           .max_slots = 512,
                                           .max_pinned_bytes = uint64_t{64} << 20}));
  std::vector<int32_t> values(kBytes / 4, 1);
  std::vector<double> us;
  std::vector<double> growing_us;
  const Clock::time_point begun = Clock::now();
  for (uint64_t n = 0; n < 256; ++n) {
    const uint64_t growths = stager->stats().growths;
    const Clock::time_point start = Clock::now();
    Must(stager->TryCopy(Destination{DevicePtr(s.There(n)), kBytes / 4, 4}, values, *s.stream));
    us.push_back(NsSince(start) / 1e3);
    if (stager->stats().growths > growths) growing_us.push_back(us.back());
  }
  const double all_ms = NsSince(begun) / 1e6;
  const bool busy = cudaStreamQuery(s.native) == cudaErrorNotReady;
  Check(cudaDeviceSynchronize(), "Draining the device");
  const double until_idle_ms = NsSince(begun) / 1e6;
  std::printf(
      "growth behind a busy device: 256 copies of 64 KiB in %.1f ms, the device was %s and "
      "idle after %.1f ms\n",
      all_ms, busy ? "still busy" : "IDLE ALREADY", until_idle_ms);
  std::printf("  any call      median %8.1f us  p99 %8.1f us  most %8.1f us\n", Quantile(us, 0.5),
              Quantile(us, 0.99), Quantile(us, 1));
  if (growing_us.empty()) return;
  std::printf("  growing call  median %8.1f us  p99 %8.1f us  most %8.1f us  (%zu)\n",
              Quantile(growing_us, 0.5), Quantile(growing_us, 0.99), Quantile(growing_us, 1),
              growing_us.size());
}

int Main() {
  const auto device = CudaDevice::Create(0);
  if (!device) {
    std::printf("device_costs: SKIPPED. %s\n", device.error().message.c_str());
    return 0;
  }
  Setting setting(*device);
  CompareCopies(setting);
  CompareSteps(setting);
  CompareThreadScaling(setting);
  CompareQuestions(setting);
  CompareThreads(setting);
  CompareBatches(setting);
  CompareAllocations(setting);
  const Kernels kernels(kKernelSource);
  for (int i = 0; i < 3; ++i) TimeGrowth(setting, kernels);
  return 0;
}

}  // namespace
}  // namespace h2d::bench

int main() { return h2d::bench::Main(); }
