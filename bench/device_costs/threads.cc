#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "h2d/bench/device_costs/compare.h"
#include "h2d/bench/device_costs/crew.h"
#include "h2d/bench/device_costs/rows.h"
#include "h2d/stager/pinned_stager.h"

namespace h2d::bench {
namespace {

constexpr uint64_t kCalls = 1000;
constexpr uint64_t kBytes = 256;

// What one way reaches with one thread and with two.
struct Scaling {
  std::string name;
  Crew::Call call;
  std::array<std::vector<double>, 2> rates = {};
  std::array<int, 2> caught_up = {};
};

// The ways and the numbers of threads take turns, loop by loop, there and back: what a machine does
// to one it does to all.
void Measure(Crew& crew, std::vector<Scaling>& ways) {
  const size_t turns = ways.size() * 2;
  for (int loop = 0; loop <= kLoops; ++loop) {
    for (size_t i = 0; i < turns; ++i) {
      const size_t turn = loop % 2 == 0 ? i : turns - 1 - i;
      Scaling& way = ways[turn / 2];
      Check(cudaDeviceSynchronize(), "Draining the device");
      const double rate = crew.Rate(turn % 2 + 1, kCalls, way.call);
      const bool idle = DrainedAtOnce();
      if (loop == 0) continue;  // it warms up
      way.rates[turn % 2].push_back(rate);
      way.caught_up[turn % 2] += idle ? 1 : 0;
    }
  }
}

void Print(const Scaling& way) {
  const double one = Quantile(way.rates[0], 0.5);
  const double two = Quantile(way.rates[1], 0.5);
  std::printf("  %-58s %9.3f  %9.3f  x%.3f  caught up %d, %d\n", way.name.c_str(), one, two,
              two / one, way.caught_up[0], way.caught_up[1]);
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
  std::vector<Scaling> ways = {
      {"raw: memcpy + cudaMemcpyAsync + cudaEventRecord, 512 slots each", raw},
      {"stager: Copy, one stager, 1,024 slots", staged},
  };
  Crew crew(2);
  Measure(crew, ways);
  std::printf(
      "copies of %llu B a microsecond by one thread, by two on two streams, loops of %llu\n",
      static_cast<unsigned long long>(kBytes), static_cast<unsigned long long>(kCalls));
  for (const Scaling& way : ways) Print(way);
  std::printf("  the stager had at most %u slots in use and waited for the device %llu times\n",
              stager->stats().slots_in_use_most,
              static_cast<unsigned long long>(stager->stats().slot_waits));
  std::fflush(stdout);
}

}  // namespace h2d::bench
