// Threads that stay, for loops that several make at once.
#ifndef H2D_BENCH_DEVICE_COSTS_CREW_H_
#define H2D_BENCH_DEVICE_COSTS_CREW_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace h2d::bench {

// An engine's threads live as long as it does and keep to their cores. One that is made for each
// loop would find its slots in another core's caches, and a loop of two milliseconds would measure
// that. Used by one thread.
class Crew {
 public:
  using Call = std::function<void(size_t thread, uint64_t n)>;

  // Each thread keeps to one core of those that the calling thread may use, as far apart as there
  // are: neighbours may be two halves of one core.
  explicit Crew(size_t threads);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // `calls` calls by each of the first `threads` threads, which begin together; answers how many
  // were made in a microsecond, summed over the threads.
  double Rate(size_t threads, uint64_t calls, const Call& call);

 private:
  void Work(size_t thread);
  void RunOnce(size_t thread);

  // What is asked for now; written while nobody works.
  size_t active_ = 0;
  uint64_t calls_ = 0;
  const Call* call_ = nullptr;

  std::atomic<uint64_t> asked_{0};  // counts the loops that were asked for
  std::atomic<size_t> ready_{0};
  std::atomic<size_t> done_{0};
  std::atomic<bool> ended_{false};
  std::vector<double> ns_;
  std::vector<std::thread> threads_;
};

}  // namespace h2d::bench

#endif  // H2D_BENCH_DEVICE_COSTS_CREW_H_
