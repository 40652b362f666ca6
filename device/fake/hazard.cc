#include "h2d/device/fake/hazard.h"

namespace h2d {
namespace {

std::string Describe(const HazardAccess& access) {
  std::string text = access.lane + ": " + access.operation;
  if (!access.memory.empty()) {
    text += access.writes ? ", writing " : ", reading ";
    text += access.memory + " [" + std::to_string(access.offset) + ", " +
            std::to_string(access.offset + access.bytes) + ")";
  }
  return text + " at " + std::to_string(access.time.count()) + " ns";
}

}  // namespace

std::string_view ToString(HazardKind kind) noexcept {
  switch (kind) {
    case HazardKind::kWriteToSourceInFlight:
      return "write to the source of a copy in flight";
    case HazardKind::kReleaseOfSourceInFlight:
      return "release of the source of a copy in flight";
    case HazardKind::kUnannouncedWrite:
      return "unannounced write to the source of a copy in flight";
    case HazardKind::kUnorderedAccess:
      return "unordered accesses to the same bytes";
    case HazardKind::kUnorderedRecord:
      return "unordered record";
    case HazardKind::kUseOfDestroyedHandle:
      return "use of a destroyed handle";
    case HazardKind::kUseOfReleasedMemory:
      return "use of released memory";
    case HazardKind::kUndeclaredAccess:
      return "access that a kernel did not declare";
    case HazardKind::kCallFromHostFunction:
      return "API call from a host function";
    case HazardKind::kDeadlock:
      return "deadlock";
  }
  return "unknown hazard";
}

std::string Hazard::ToString() const {
  std::string text = "hazard: " + std::string(h2d::ToString(kind)) + "\n";
  if (!first.lane.empty()) text += "  first   " + Describe(first) + "\n";
  if (!second.lane.empty()) text += "  second  " + Describe(second) + "\n";
  if (!missing.empty()) text += "  missing " + missing + "\n";
  return text;
}

}  // namespace h2d
