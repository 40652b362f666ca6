// What can be made to fail: kinds of calls, and faults as plain data.
#ifndef H2D_DEVICE_FAULTY_FAULT_H_
#define H2D_DEVICE_FAULTY_FAULT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "h2d/device/error.h"

namespace h2d {

// The methods of `Device` that can fail, in the order of device.h.
enum class CallKind : uint8_t {
  kAllocatePinned,
  kTrim,
  kKindOf,
  kCopyAsync,
  kCopyBatchAsync,
  kCreateEvent,
  kRecord,
  kQuery,
  kWaitAny,
  kWaitEvent,
  kInspect,
};

// All of them, to fail each in turn.
inline constexpr std::array<CallKind, 11> kCallKinds = {
    CallKind::kAllocatePinned, CallKind::kTrim,        CallKind::kKindOf,  CallKind::kCopyAsync,
    CallKind::kCopyBatchAsync, CallKind::kCreateEvent, CallKind::kRecord,  CallKind::kQuery,
    CallKind::kWaitAny,        CallKind::kWaitEvent,   CallKind::kInspect,
};

// The method's name, e.g. "CopyAsync".
std::string_view ToString(CallKind kind) noexcept;

enum class FaultSpan : uint8_t {
  kOnce,     // call N fails
  kForEver,  // call N and every later call of its kind fail
  kSticky,   // from call N on, every call of every kind fails: the device is lost
};

enum class FaultTiming : uint8_t {
  kBeforeCall,  // the device is not called: nothing was issued
  kAfterCall,   // the device is called, its answer dropped: what was issued stays issued
};

// One fault. Fields that are not named have their defaults:
//
//   faulty->Inject({.kind = CallKind::kRecord, .call = 3});
struct Fault {
  CallKind kind = CallKind::kCopyAsync;
  uint64_t call = 1;  // the first to fail, counted from 1 since the device was made
  FaultSpan span = FaultSpan::kOnce;
  FaultTiming timing = FaultTiming::kBeforeCall;
  // What the call answers. An empty message is replaced by one that names the call.
  Error error = {ErrorCode::kDevice, 999, {}};
};

// No more pinned memory from allocation `call` on.
Fault OutOfMemory(uint64_t call = 1);

}  // namespace h2d

#endif  // H2D_DEVICE_FAULTY_FAULT_H_
