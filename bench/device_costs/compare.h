// Times of small calls on a GPU machine, for ratios within one run.
#ifndef H2D_BENCH_DEVICE_COSTS_COMPARE_H_
#define H2D_BENCH_DEVICE_COSTS_COMPARE_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace h2d::bench {

using Clock = std::chrono::steady_clock;

inline constexpr int kLoops = 31;

double NsSince(Clock::time_point start);
double Quantile(std::vector<double> values, double q);

// Drains the device; answers whether it was idle already, when that took no longer than the call.
bool DrainedAtOnce();

struct Contender {
  std::string name;
  std::function<void(uint64_t n)> call;      // `n` counts the calls of a loop
  std::function<std::string()> beside = {};  // whom it is compared with; null: the first contender
  std::function<std::string()> note = {};    // printed behind the figures
  std::vector<double> ns = {};
  int caught_up = 0;  // after how many loops the device had nothing left to do
};

// Times the contenders in turn, there and back, in loops of `calls`, and prints the medians of
// `kLoops` loops beside that of the contender that each names. The device is drained before each
// loop. "caught up n" says after how many of the loops the device had done all of the work when the
// last call returned: where it had not, a contender that bounds what is in flight may have been
// waiting for it.
void Compare(const std::string& title, std::vector<Contender> contenders, uint64_t calls = 1000);

}  // namespace h2d::bench

#endif  // H2D_BENCH_DEVICE_COSTS_COMPARE_H_
