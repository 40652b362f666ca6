#include "h2d/bench/device_costs/near_cores.h"

#include <cuda_runtime_api.h>
#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "h2d/bench/device_costs/compare.h"
#include "h2d/bench/live_graph/cuda_check.h"

namespace h2d::bench {
namespace {

constexpr uint64_t kCalls = 200;
constexpr double kNear = 1.25;  // times the fastest

void KeepTo(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(core, &set);
  // Where it is not allowed, the process stays where it may run.
  static_cast<void>(sched_setaffinity(0, sizeof(set), &set));
}

std::vector<int> AllowedCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

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
  std::vector<std::pair<double, int>> times;
  for (const int core : AllowedCores()) {
    KeepTo({core});
    times.emplace_back(NsOf(call), core);
  }
  if (times.empty()) return;
  std::ranges::sort(times);
  std::vector<int> near;
  for (const auto& [ns, core] : times) {
    if (ns <= kNear * times.front().first) near.push_back(core);
  }
  KeepTo(near);
  std::printf(
      "kept to %zu of %zu cores; a raw copy took %.0f ns on the nearest, %.0f on the farthest\n",
      near.size(), times.size(), times.front().first, times.back().first);
}

}  // namespace h2d::bench
