// A lock for sections of a few dozen instructions.
#ifndef H2D_DEVICE_BRIEF_LOCK_H_
#define H2D_DEVICE_BRIEF_LOCK_H_

#include <atomic>
#include <cstdint>

namespace h2d::internal {

// Mutual exclusion with the standard's names, not recursive. Beside `std::mutex` of glibc it takes
// a fifth of the instructions when nobody contends, and who finds it held first spins: a sleep and
// its wake-up take longer than a hundred of the sections that the library guards. Who spun in vain
// sleeps (`futex`), so a holder that was preempted costs its waiters no more than that.
//
// Thread-safe. May be destroyed as soon as nobody can still call `lock`. Of no use across a fork.
class BriefLock {
 public:
  BriefLock() = default;
  BriefLock(const BriefLock&) = delete;
  BriefLock& operator=(const BriefLock&) = delete;

  void lock() noexcept {
    uint32_t expected = kFree;
    if (!state_.compare_exchange_strong(expected, kHeld, std::memory_order_acquire,
                                        std::memory_order_relaxed)) [[unlikely]] {
      LockContended();
    }
  }
  void unlock() noexcept {
    if (state_.exchange(kFree, std::memory_order_release) == kHeldWithSleepers) [[unlikely]] {
      WakeOne();
    }
  }

 private:
  static constexpr uint32_t kFree = 0;
  static constexpr uint32_t kHeld = 1;
  static constexpr uint32_t kHeldWithSleepers = 2;  // perhaps: the holder wakes one when it is done

  void LockContended() noexcept;
  void WakeOne() noexcept;

  std::atomic<uint32_t> state_{kFree};
};

}  // namespace h2d::internal

#endif  // H2D_DEVICE_BRIEF_LOCK_H_
