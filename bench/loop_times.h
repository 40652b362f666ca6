// Times of work that is too short to time alone, for ratios within one run.
//
// Absolute times of small calls differ between machines, and on one machine from minute to minute.
// So a benchmark times its contenders in turn, loop by loop, in one process, and compares medians.
// It counts the CPU time of its own thread, so the turns of other programs take no part; work that
// waits for something needs another clock.
#ifndef H2D_BENCH_LOOP_TIMES_H_
#define H2D_BENCH_LOOP_TIMES_H_

#include <time.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace h2d {

// One contender's times. Not thread-safe.
class LoopTimes {
 public:
  explicit LoopTimes(uint64_t calls_per_loop) : calls_(calls_per_loop) {}

  // Does `work` `calls_per_loop` times; answers and remembers the nanoseconds of one, on average.
  template <class Work>
  double Add(const Work& work) {
    const double start = ThreadNs();
    for (uint64_t call = 0; call < calls_; ++call) work();
    loops_.push_back((ThreadNs() - start) / static_cast<double>(calls_));
    return loops_.back();
  }

  // The median of the loops, in nanoseconds a call; 0 without a loop.
  double MedianNs() const {
    if (loops_.empty()) return 0;
    std::vector<double> sorted = loops_;
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
    std::nth_element(sorted.begin(), middle, sorted.end());
    return *middle;
  }

 private:
  static double ThreadNs() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
  }

  uint64_t calls_;
  std::vector<double> loops_;
};

// Small calls in loops of 1,000, large ones in shorter loops of about 64 MiB.
inline uint64_t CallsPerLoop(uint64_t bytes) {
  return std::clamp<uint64_t>((uint64_t{64} << 20) / bytes, 64, 1000);
}

}  // namespace h2d

#endif  // H2D_BENCH_LOOP_TIMES_H_
