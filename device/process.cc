#include "h2d/device/process.h"

#include <pthread.h>

namespace h2d::internal {

std::atomic<ProcessEpoch> process_epoch{1};

namespace {

// Registered before main. It stands beside the epoch, so that whoever reads that is linked with it.
[[maybe_unused]] const int registered =
    pthread_atfork(nullptr, nullptr, [] { process_epoch.fetch_add(1, std::memory_order_relaxed); });

}  // namespace
}  // namespace h2d::internal
