#include "h2d/bench/device_costs/compare.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "h2d/bench/live_graph/cuda_check.h"

namespace h2d::bench {
namespace {

const Contender& Beside(const std::vector<Contender>& contenders, const Contender& contender) {
  if (!contender.beside) return contenders.front();
  const auto named = std::ranges::find(contenders, contender.beside(), &Contender::name);
  return named == contenders.end() ? contenders.front() : *named;
}

}  // namespace

double NsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

double Quantile(std::vector<double> values, double q) {
  std::ranges::sort(values);
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1))];
}

bool DrainedAtOnce() {
  const Clock::time_point start = Clock::now();
  Check(cudaDeviceSynchronize(), "Draining the device");
  return NsSince(start) < 15'000;
}

void Compare(const std::string& title, std::vector<Contender> contenders, uint64_t calls) {
  for (int loop = 0; loop <= kLoops; ++loop) {
    for (size_t i = 0; i < contenders.size(); ++i) {
      Contender& contender = contenders[loop % 2 == 0 ? i : contenders.size() - 1 - i];
      Check(cudaDeviceSynchronize(), "Draining the device");
      const Clock::time_point start = Clock::now();
      for (uint64_t n = 0; n < calls; ++n) contender.call(n);
      const double ns = NsSince(start) / static_cast<double>(calls);
      const bool idle = DrainedAtOnce();
      if (loop == 0) continue;  // it warms up
      contender.ns.push_back(ns);
      contender.caught_up += idle ? 1 : 0;
    }
  }
  std::printf("%s, loops of %llu\n", title.c_str(), static_cast<unsigned long long>(calls));
  for (const Contender& contender : contenders) {
    const Contender& beside = Beside(contenders, contender);
    const double median = Quantile(contender.ns, 0.5);
    const double other = Quantile(beside.ns, 0.5);
    std::printf("  %-58s %9.1f ns  x%.3f  %+8.1f ns  caught up %d", contender.name.c_str(), median,
                median / other, median - other, contender.caught_up);
    if (contender.beside) std::printf("  beside %s", beside.name.c_str());
    if (contender.note) std::printf("; %s", contender.note().c_str());
    std::printf("\n");
  }
  std::fflush(stdout);
}

}  // namespace h2d::bench
