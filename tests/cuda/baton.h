// Threads that run one at a time, in turns.
#ifndef H2D_TESTS_CUDA_BATON_H_
#define H2D_TESTS_CUDA_BATON_H_

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <vector>

namespace h2d::testing {

// Runs tasks as threads of the operating system, so that each has a capture mode and a default
// stream of its own, but only one at a time: a plan's bookkeeping needs no lock, and the order of
// the operations is the same in every run.
class Baton {
 public:
  // Returns when all tasks have ended.
  void Run(const std::vector<std::function<void()>>& tasks);

  // Lets the next task run that has not ended, and returns when it is the caller's turn again. Does
  // nothing outside a task.
  void Pass();

 private:
  void TakeTurn(size_t task);
  void NextTurn(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable turned_;
  std::vector<bool> ended_;
  size_t turn_ = 0;
};

}  // namespace h2d::testing

#endif  // H2D_TESTS_CUDA_BATON_H_
