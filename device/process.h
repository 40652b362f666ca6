// Tells a process from a child forked from it, at the cost of one load.
//
// Device drivers do not survive `fork`: in the child every call on an inherited device must fail
// and every destructor must do nothing (I9).
#ifndef H2D_DEVICE_PROCESS_H_
#define H2D_DEVICE_PROCESS_H_

#include <cstdint>

namespace h2d {

// Grows by one in each forked child.
using ProcessEpoch = uint32_t;

// The epoch of the calling process. Two values compare equal when no fork lies between them.
// Thread-safe; async-signal-safe after the first call.
ProcessEpoch CurrentProcess() noexcept;

}  // namespace h2d

#endif  // H2D_DEVICE_PROCESS_H_
