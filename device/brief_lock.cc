#include "h2d/device/brief_lock.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace h2d::internal {
namespace {

// About a microsecond or two: longer than any section without a call to the driver lasts.
constexpr int kSpins = 100;

void Pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// The kernel looks at the word itself; `std::atomic` of this type is that word alone.
static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));
static_assert(std::atomic<uint32_t>::is_always_lock_free);

void Futex(std::atomic<uint32_t>& word, int operation, uint32_t value) noexcept {
  // Whatever it answers, the caller looks at the word again.
  static_cast<void>(syscall(SYS_futex, &word, operation, value, nullptr, nullptr, 0));
}

}  // namespace

void BriefLock::LockContended() noexcept {
  for (int spin = 0; spin < kSpins; ++spin) {
    Pause();
    uint32_t expected = kFree;
    if (state_.load(std::memory_order_relaxed) == kFree &&
        state_.compare_exchange_weak(expected, kHeld, std::memory_order_acquire,
                                     std::memory_order_relaxed)) {
      return;
    }
  }
  // From here on the word says that there may be sleepers, also once this thread holds the lock: it
  // cannot know that it was the only one.
  while (state_.exchange(kHeldWithSleepers, std::memory_order_acquire) != kFree) {
    Futex(state_, FUTEX_WAIT_PRIVATE, kHeldWithSleepers);
  }
}

void BriefLock::WakeOne() noexcept { Futex(state_, FUTEX_WAKE_PRIVATE, 1); }

}  // namespace h2d::internal
