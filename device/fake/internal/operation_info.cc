#include "h2d/device/fake/internal/operation_info.h"

#include <array>
#include <cstddef>

namespace h2d::fake_internal {
namespace {

std::string Place(const MemoryRef& memory, const Names& names) {
  return names.Of(memory) + " + " + std::to_string(memory.offset);
}

std::string FromTo(const OperationInfo& op, const Names& names) {
  std::string text;
  const bool has_source = op.source.space != MemorySpaceKind::kNone;
  const bool has_destination = op.destination.space != MemorySpaceKind::kNone;
  if (!has_source && !has_destination) return text;
  text += " of " + std::to_string(has_destination ? op.destination.bytes : op.source.bytes) + " B";
  if (has_source) text += " from " + Place(op.source, names);
  if (has_destination) text += (has_source ? " to " : " at ") + Place(op.destination, names);
  return text;
}

}  // namespace

const std::string& Names::Of(const MemoryRef& memory) const {
  static const std::string* const pageable = new std::string("pageable memory");
  static const std::string* const none = new std::string();
  switch (memory.space) {
    case MemorySpaceKind::kDevice:
      return device[memory.id];
    case MemorySpaceKind::kPinned:
      return pinned[memory.id];
    case MemorySpaceKind::kPageable:
      return *pageable;
    case MemorySpaceKind::kNone:
      break;
  }
  return *none;
}

std::string_view ToString(OpKind kind) noexcept {
  constexpr std::array<std::string_view, 27> kNames = {
      "copy",          "batch copy",  "kernel",       "host function",  "record",
      "stream wait",   "read back",   "graph launch", "query",          "host wait",
      "host read",     "host write",  "pinned alloc", "pinned release", "trim",
      "device alloc",  "device free", "new stream",   "destroy stream", "create event",
      "destroy event", "inspect",     "hold",         "release hold",   "begin capture",
      "end capture",   "call"};
  const auto index = static_cast<size_t>(kind);
  return index < kNames.size() ? kNames[index] : "call";
}

std::string DetailsOf(const OperationInfo& op, const Names& names) {
  switch (op.kind) {
    case OpKind::kKernel:
      return op.object == 0 ? std::string() : " '" + names.kernels[op.object] + "'";
    case OpKind::kRecord:
    case OpKind::kStreamWait:
    case OpKind::kQuery:
    case OpKind::kCreateEvent:
    case OpKind::kDestroyEvent:
      return op.object == 0 ? std::string() : " of event " + std::to_string(op.object);
    case OpKind::kGraphLaunch:
      return " of graph " + std::to_string(op.object);
    default:
      return FromTo(op, names);
  }
}

std::string Describe(const OperationInfo& op, const Names& names) {
  std::string text(ToString(op.kind));
  text += " #" + std::to_string(op.number) + DetailsOf(op, names);
  if (op.lane != op.caller) text += " on " + names.lanes[op.lane];
  return text;
}

}  // namespace h2d::fake_internal
