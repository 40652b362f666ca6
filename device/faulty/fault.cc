#include "h2d/device/faulty/fault.h"

namespace h2d {

std::string_view ToString(CallKind kind) noexcept {
  switch (kind) {
    case CallKind::kAllocatePinned:
      return "AllocatePinned";
    case CallKind::kTrim:
      return "Trim";
    case CallKind::kKindOf:
      return "KindOf";
    case CallKind::kCopyAsync:
      return "CopyAsync";
    case CallKind::kCopyBatchAsync:
      return "CopyBatchAsync";
    case CallKind::kCreateEvent:
      return "CreateEvent";
    case CallKind::kRecord:
      return "Record";
    case CallKind::kQuery:
      return "Query";
    case CallKind::kWaitAny:
      return "WaitAny";
    case CallKind::kWaitEvent:
      return "WaitEvent";
    case CallKind::kInspect:
      return "Inspect";
  }
  return "an unknown call";
}

Fault OutOfMemory(uint64_t call) {
  return Fault{CallKind::kAllocatePinned,
               call,
               FaultSpan::kForEver,
               FaultTiming::kBeforeCall,
               {ErrorCode::kResourceExhausted, 0, "The machine has no more memory to pin."}};
}

}  // namespace h2d
