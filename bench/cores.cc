#include "h2d/bench/cores.h"

#include <sched.h>

#include <algorithm>
#include <utility>

namespace h2d::bench {
namespace {

constexpr double kNear = 1.25;  // times the fastest

}  // namespace

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

void KeepTo(const std::vector<int>& cores) {
  if (cores.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(core, &set);
  static_cast<void>(sched_setaffinity(0, sizeof(set), &set));
}

std::vector<int> NearCores(const std::vector<int>& cores, const std::function<double()>& seconds) {
  std::vector<std::pair<double, int>> times;
  for (const int core : cores) {
    KeepTo({core});
    times.emplace_back(seconds(), core);
  }
  KeepTo(cores);
  if (times.empty()) return {};
  const double fastest = std::min_element(times.begin(), times.end())->first;
  std::vector<int> near;
  for (const auto& [time, core] : times) {
    if (time <= kNear * fastest) near.push_back(core);
  }
  return near;
}

}  // namespace h2d::bench
