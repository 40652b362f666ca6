// What an operation is, in a form that costs little to keep and can be put into words later.
#ifndef H2D_DEVICE_FAKE_INTERNAL_OPERATION_INFO_H_
#define H2D_DEVICE_FAKE_INTERNAL_OPERATION_INFO_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "h2d/device/fake/internal/clock.h"

namespace h2d::fake_internal {

enum class OpKind : uint8_t {
  kCopy,
  kBatch,
  kKernel,
  kHostFunction,
  kRecord,
  kStreamWait,
  kReadBack,
  kGraphLaunch,
  kQuery,
  kHostWait,
  kHostRead,
  kHostWrite,
  kAllocatePinned,
  kReleasePinned,
  kTrim,
  kAllocateDevice,
  kFreeDevice,
  kNewStream,
  kDestroyStream,
  kCreateEvent,
  kDestroyEvent,
  kInspect,
  kHold,
  kReleaseHold,
  kBeginCapture,
  kEndCapture,
  kOther,
};

enum class MemorySpaceKind : uint8_t { kNone, kDevice, kPinned, kPageable };

// Bytes in words of the simulation: no address of this process.
struct MemoryRef {
  MemorySpaceKind space = MemorySpaceKind::kNone;
  uint32_t id = 0;  // counts the allocations of a space
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

struct OperationInfo {
  OpKind kind = OpKind::kOther;
  LaneIndex caller = 0;  // whose call it was
  LaneIndex lane = 0;    // where it runs: a stream, or the caller
  uint64_t number = 0;   // counts the device's operations
  uint32_t object = 0;   // event, graph or name, by `kind`
  MemoryRef source;
  MemoryRef destination;
  std::chrono::nanoseconds time{0};  // of the call
};

// The names that appear in messages. Entries are never removed.
struct Names {
  std::vector<std::string> lanes;
  std::vector<std::string> device;   // by allocation id
  std::vector<std::string> pinned;   // by block id
  std::vector<std::string> kernels;  // by `OperationInfo::object`; 0 is the nameless one

  const std::string& Of(const MemoryRef& memory) const;
};

std::string_view ToString(OpKind kind) noexcept;

// Whether it goes on after its call has returned.
constexpr bool RunsLater(OpKind kind) noexcept {
  return kind == OpKind::kCopy || kind == OpKind::kBatch || kind == OpKind::kKernel ||
         kind == OpKind::kHostFunction || kind == OpKind::kReadBack;
}

// " of 64 B from pinned 0 + 128 to device 1 + 0", " of event 3", " 'decode'"; or nothing.
std::string DetailsOf(const OperationInfo& operation, const Names& names);

// "copy #12 of 64 B from pinned 0 + 128 to device 1 + 0 on stream 2"
std::string Describe(const OperationInfo& operation, const Names& names);

}  // namespace h2d::fake_internal

#endif  // H2D_DEVICE_FAKE_INTERNAL_OPERATION_INFO_H_
