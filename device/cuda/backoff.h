// How long a poller pauses between two looks.
#ifndef H2D_DEVICE_CUDA_BACKOFF_H_
#define H2D_DEVICE_CUDA_BACKOFF_H_

#include <algorithm>
#include <chrono>
#include <thread>

namespace h2d::internal {

// A small copy completes within 10 us, so the first looks follow each other at once; later ones let
// other threads run, then sleep, twice as long each time up to 200 us, so that a long wait costs
// little of a core and ends at most that much late.
class Backoff {
 public:
  // Pauses, for at most `left`.
  void Pause(std::chrono::nanoseconds left) noexcept {
    if (looks_ < kEagerLooks) {
      ++looks_;
      return;
    }
    if (looks_ < kEagerLooks + kYieldingLooks) {
      ++looks_;
      std::this_thread::yield();
      return;
    }
    std::this_thread::sleep_for(std::min(sleep_, left));
    sleep_ = std::min(sleep_ * 2, kLongestSleep);
  }

 private:
  static constexpr int kEagerLooks = 64;
  static constexpr int kYieldingLooks = 64;
  static constexpr std::chrono::nanoseconds kLongestSleep = std::chrono::microseconds(200);

  int looks_ = 0;
  std::chrono::nanoseconds sleep_ = std::chrono::microseconds(10);
};

}  // namespace h2d::internal

#endif  // H2D_DEVICE_CUDA_BACKOFF_H_
