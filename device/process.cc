#include "h2d/device/process.h"

#include <pthread.h>

#include <atomic>

namespace h2d {
namespace {

std::atomic<ProcessEpoch> epoch{1};

// Registered before main; a child counts on from its parent's epoch.
const int registered =
    pthread_atfork(nullptr, nullptr, [] { epoch.fetch_add(1, std::memory_order_relaxed); });

}  // namespace

ProcessEpoch CurrentProcess() noexcept {
  static_cast<void>(registered);
  return epoch.load(std::memory_order_relaxed);
}

}  // namespace h2d
