#include <atomic>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "h2d/bench/device_costs/compare.h"
#include "h2d/bench/device_costs/rows.h"
#include "h2d/stager/pinned_stager.h"

namespace h2d::bench {
namespace {

constexpr uint64_t kCalls = 1000;
constexpr uint64_t kBytes = 256;

// Copies made in a microsecond by `threads` threads together, the median of `kLoops` loops.
double Throughput(size_t threads, const std::function<void(size_t thread, uint64_t n)>& call) {
  std::vector<double> rates;
  for (int loop = 0; loop <= kLoops; ++loop) {
    Check(cudaDeviceSynchronize(), "Draining the device");
    std::atomic<size_t> ready{0};
    std::vector<std::thread> running;
    std::vector<double> ns(threads);
    for (size_t thread = 0; thread < threads; ++thread) {
      running.emplace_back([&, thread] {
        // An engine's threads have a device; one that has none pays for each call of the driver.
        Check(cudaSetDevice(0), "Choosing the device");
        call(thread, 0);  // whatever a thread's first call costs
        ++ready;
        while (ready < threads) std::this_thread::yield();
        const Clock::time_point start = Clock::now();
        for (uint64_t n = 0; n < kCalls; ++n) call(thread, n);
        ns[thread] = NsSince(start);
      });
    }
    for (std::thread& thread : running) thread.join();
    double rate = 0;
    for (const double of_thread : ns) rate += kCalls / of_thread * 1e3;
    if (loop > 0) rates.push_back(rate);
  }
  return Quantile(rates, 0.5);
}

void Print(const char* name, double one, double two) {
  std::printf("  %-58s %6.3f  %6.3f  x%.3f\n", name, one, two, two / one);
}

}  // namespace

void CompareThreadScaling(Setting& setting) {
  // As many slots for both threads together as the stager has.
  Setting one(setting.device, 512);
  Setting other(setting.device, 512);
  Setting* const of_thread[] = {&one, &other};
  const auto raw = [&](size_t thread, uint64_t n) {
    Setting& s = *of_thread[thread];
    std::byte values[kBytes];
    std::memset(values, static_cast<int>(n), kBytes);
    std::memcpy(s.Slot(n, kBytes), values, kBytes);
    Check(cudaMemcpyAsync(s.There(n), s.Slot(n, kBytes), kBytes, cudaMemcpyHostToDevice, s.native),
          "A copy");
    Check(cudaEventRecord(s.native_events[n % s.slots], s.native), "A record");
  };
  const std::shared_ptr<PinnedStager> stager = Must(PinnedStager::Create(
      setting.device, {.slot_bytes = kBytes, .initial_slots = 1024, .max_slots = 1024}));
  const auto staged = [&](size_t thread, uint64_t n) {
    Setting& s = *of_thread[thread];
    std::array<uint8_t, kBytes> values;
    values.fill(static_cast<uint8_t>(n));
    Must(stager->Copy({DevicePtr(s.There(n)), kBytes, 1}, values, *s.stream));
  };
  std::printf(
      "copies of %llu B a microsecond by one thread, by two on two streams, loops of %llu\n",
      static_cast<unsigned long long>(kBytes), static_cast<unsigned long long>(kCalls));
  Print("raw: memcpy + cudaMemcpyAsync + cudaEventRecord, 512 slots each", Throughput(1, raw),
        Throughput(2, raw));
  Print("stager: Copy, one stager, 1,024 slots", Throughput(1, staged), Throughput(2, staged));
  std::fflush(stdout);
}

}  // namespace h2d::bench
