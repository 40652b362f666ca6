#include "h2d/device/stream.h"

#include <atomic>

namespace h2d {

uint64_t NextDeviceTag() noexcept {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace h2d
