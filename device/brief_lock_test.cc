#include "h2d/device/brief_lock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace h2d::internal {
namespace {

// Adds in two halves, so that an add by two threads at once is lost.
struct Tally {
  void Add(bool slowly) {
    const std::lock_guard<BriefLock> guard(lock);
    const uint64_t seen = count;
    if (slowly) std::this_thread::yield();
    count = seen + 1;
  }

  BriefLock lock;
  uint64_t count = 0;
};

TEST(BriefLockTest, OneThreadAtATimeIsInside) {
  constexpr uint64_t kThreads = 4;
  constexpr uint64_t kAdds = 20'000;
  Tally tally;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    // Some hold it for so long that the others stop spinning and sleep.
    threads.emplace_back([&tally] {
      for (uint64_t n = 0; n < kAdds; ++n) tally.Add(n % 16 == 0);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(tally.count, kThreads * kAdds);
}

// The holder gives the lock up only when all the others had time to fall asleep; each of them
// wakes.
TEST(BriefLockTest, EverySleeperIsWoken) {
  BriefLock lock;
  std::atomic<int> inside{0};
  std::atomic<int> started{0};
  std::vector<std::thread> threads;
  lock.lock();
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      ++started;
      const std::lock_guard<BriefLock> guard(lock);
      ++inside;
    });
  }
  while (started < 3) std::this_thread::yield();
  for (int n = 0; n < 1000; ++n) std::this_thread::yield();
  EXPECT_EQ(inside.load(), 0);
  lock.unlock();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(inside.load(), 3);
}

}  // namespace
}  // namespace h2d::internal
