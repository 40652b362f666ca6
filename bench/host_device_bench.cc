// What a call of the host device costs: the zero of every overhead that is measured on it.
#include <benchmark/benchmark.h>

#include <array>
#include <cstddef>
#include <memory>

#include "h2d/device/host/host_device.h"

namespace h2d {
namespace {

struct Bench {
  std::shared_ptr<HostDevice> host = HostDevice::Create();
  std::shared_ptr<Device> device = host;  // as users hold it: no call is resolved at compile time
  Stream stream = host->NewStream();
  Expected<Event> event = device->CreateEvent();
  std::array<std::byte, 64> source{};
  std::array<std::byte, 64> destination{};
};

void BM_CopyAsync64Bytes(benchmark::State& state) {
  Bench bench;
  const DevicePtr there(bench.destination.data());
  for (auto _ : state) {
    auto result = bench.device->CopyAsync(there, bench.source, bench.stream);
    benchmark::DoNotOptimize(result);
  }
}
BENCHMARK(BM_CopyAsync64Bytes);

void BM_Record(benchmark::State& state) {
  Bench bench;
  for (auto _ : state) {
    auto result = bench.device->Record(*bench.event, bench.stream);
    benchmark::DoNotOptimize(result);
  }
}
BENCHMARK(BM_Record);

void BM_Query(benchmark::State& state) {
  Bench bench;
  for (auto _ : state) {
    auto result = bench.device->Query(*bench.event);
    benchmark::DoNotOptimize(result);
  }
}
BENCHMARK(BM_Query);

void BM_WaitEvent(benchmark::State& state) {
  Bench bench;
  for (auto _ : state) {
    auto result = bench.device->WaitEvent(bench.stream, *bench.event);
    benchmark::DoNotOptimize(result);
  }
}
BENCHMARK(BM_WaitEvent);

void BM_Inspect(benchmark::State& state) {
  Bench bench;
  for (auto _ : state) {
    auto result = bench.device->Inspect(bench.stream);
    benchmark::DoNotOptimize(result);
  }
}
BENCHMARK(BM_Inspect);

void BM_InspectThePerThreadStream(benchmark::State& state) {
  Bench bench;
  const Stream stream = bench.host->PerThreadStream();
  for (auto _ : state) {
    auto result = bench.device->Inspect(stream);
    benchmark::DoNotOptimize(result);
  }
}
BENCHMARK(BM_InspectThePerThreadStream);

}  // namespace
}  // namespace h2d
