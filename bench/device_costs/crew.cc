#include "h2d/bench/device_costs/crew.h"

#include <cuda_runtime_api.h>

#include "h2d/bench/cores.h"
#include "h2d/bench/device_costs/compare.h"
#include "h2d/bench/live_graph/cuda_check.h"

namespace h2d::bench {

Crew::Crew(size_t threads) : ns_(threads) {
  const std::vector<int> cores = AllowedCores();
  for (size_t thread = 0; thread < threads; ++thread) {
    threads_.emplace_back([this, thread, threads, cores] {
      const size_t gaps = threads > 1 ? threads - 1 : 1;
      if (!cores.empty()) KeepTo({cores[(cores.size() - 1) * thread / gaps]});
      // An engine's threads have a device; one that has none pays for each call of the driver.
      Check(cudaSetDevice(0), "Choosing the device");
      Work(thread);
    });
  }
}

Crew::~Crew() {
  ended_ = true;
  ++asked_;
  for (std::thread& thread : threads_) thread.join();
}

void Crew::Work(size_t thread) {
  for (uint64_t seen = 0;; ++seen) {
    while (asked_ == seen) std::this_thread::yield();
    if (ended_) return;
    if (thread < active_) RunOnce(thread);
    ++done_;
  }
}

void Crew::RunOnce(size_t thread) {
  (*call_)(thread, 0);  // whatever the first call of a loop costs
  ++ready_;
  while (ready_ < active_) std::this_thread::yield();
  const Clock::time_point start = Clock::now();
  for (uint64_t n = 0; n < calls_; ++n) (*call_)(thread, n);
  ns_[thread] = NsSince(start);
}

double Crew::Rate(size_t threads, uint64_t calls, const Call& call) {
  active_ = threads;
  calls_ = calls;
  call_ = &call;
  ready_ = 0;
  done_ = 0;
  ++asked_;
  while (done_ < threads_.size()) std::this_thread::yield();
  double rate = 0;
  for (size_t thread = 0; thread < threads; ++thread)
    rate += static_cast<double>(calls) / ns_[thread] * 1e3;
  return rate;
}

}  // namespace h2d::bench
