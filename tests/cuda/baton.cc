#include "h2d/tests/cuda/baton.h"

#include <optional>
#include <thread>

namespace h2d::testing {
namespace {

thread_local std::optional<size_t> own_task;

}  // namespace

void Baton::Run(const std::vector<std::function<void()>>& tasks) {
  ended_.assign(tasks.size(), false);
  turn_ = 0;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < tasks.size(); ++i) {
    threads.emplace_back([this, i, &tasks] {
      own_task = i;
      TakeTurn(i);
      tasks[i]();
      std::unique_lock<std::mutex> lock(mutex_);
      ended_[i] = true;
      NextTurn(lock);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void Baton::Pass() {
  if (!own_task) return;
  {
    std::unique_lock<std::mutex> lock(mutex_);
    NextTurn(lock);
  }
  TakeTurn(*own_task);
}

void Baton::TakeTurn(size_t task) {
  std::unique_lock<std::mutex> lock(mutex_);
  turned_.wait(lock, [&] { return turn_ == task; });
}

void Baton::NextTurn(std::unique_lock<std::mutex>&) {
  for (size_t step = 1; step <= ended_.size(); ++step) {
    const size_t next = (turn_ + step) % ended_.size();
    if (ended_[next]) continue;
    turn_ = next;
    break;
  }
  turned_.notify_all();
}

}  // namespace h2d::testing
