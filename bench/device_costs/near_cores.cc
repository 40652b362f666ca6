#include "h2d/bench/device_costs/near_cores.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "h2d/bench/cores.h"
#include "h2d/bench/device_costs/compare.h"
#include "h2d/bench/live_graph/cuda_check.h"

namespace h2d::bench {
namespace {

constexpr uint64_t kCalls = 200;

double NsOf(const std::function<void(uint64_t n)>& call) {
  std::vector<double> loops;
  for (int loop = 0; loop < 5; ++loop) {
    Check(cudaDeviceSynchronize(), "Draining the device");
    const Clock::time_point start = Clock::now();
    for (uint64_t n = 0; n < kCalls; ++n) call(n);
    loops.push_back(NsSince(start) / kCalls);
  }
  return Quantile(loops, 0.5);
}

}  // namespace

void KeepToNearCores(const std::function<void(uint64_t n)>& call) {
  std::vector<double> times;
  const std::vector<int> near = NearCores(AllowedCores(), [&] {
    times.push_back(NsOf(call));
    return times.back();
  });
  if (near.empty()) return;
  KeepTo(near);
  const auto [nearest, farthest] = std::minmax_element(times.begin(), times.end());
  std::printf(
      "kept to %zu of %zu cores; a raw copy took %.0f ns on the nearest, %.0f on the farthest\n",
      near.size(), times.size(), *nearest, *farthest);
}

}  // namespace h2d::bench
