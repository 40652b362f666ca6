// Tells a process from a child forked from it, at the cost of one load.
//
// Device drivers do not survive `fork`: in the child every call on an inherited device must fail
// and every destructor must do nothing (I9).
#ifndef H2D_DEVICE_PROCESS_H_
#define H2D_DEVICE_PROCESS_H_

#include <atomic>
#include <cstdint>

namespace h2d {

// Grows by one in each forked child.
using ProcessEpoch = uint32_t;

namespace internal {
extern std::atomic<ProcessEpoch> process_epoch;
}

// The epoch of the calling process. Two values compare equal when no fork lies between them.
// Thread-safe; async-signal-safe.
inline ProcessEpoch CurrentProcess() noexcept {
  return internal::process_epoch.load(std::memory_order_relaxed);
}

}  // namespace h2d

#endif  // H2D_DEVICE_PROCESS_H_
