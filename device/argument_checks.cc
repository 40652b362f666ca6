#include "h2d/device/argument_checks.h"

#include <string>

namespace h2d {
namespace {

// "Event 2 of 5": which of many is meant, counted from 0 as the caller indexes them.
std::string Nth(const char* what, size_t index, size_t count) {
  return std::string(what) + " " + std::to_string(index) + " of " + std::to_string(count) +
         " (counted from 0)";
}

Unexpected BadEventCalled(const std::string& name, const Event& event) {
  if (event.owner() == nullptr) {
    return InvalidArgument(name + " was moved from, and names nothing.");
  }
  return InvalidArgument(name + " belongs to another device.");
}

Unexpected BadCopyCalled(const std::string& name, DevicePtr destination,
                         std::span<const std::byte> source) {
  const std::string copy = name + " of " + std::to_string(source.size()) + " bytes ";
  if (destination.is_null()) return InvalidArgument(copy + "has a null destination.");
  if (source.data() == nullptr) return InvalidArgument(copy + "has a null source.");
  return InvalidArgument(copy + "to the address " + std::to_string(destination.address()) +
                         " ends beyond the last address.");
}

}  // namespace

namespace argument_errors {

Unexpected ForkedChild() {
  return FailedPrecondition(
      "The device was made before this process was forked, and cannot be used in the child.");
}

Unexpected NoBytes() { return InvalidArgument("Pinned memory of 0 bytes cannot be allocated."); }

Unexpected ForeignStream(const Stream& stream, uint64_t device_tag) {
  return InvalidArgument(
      "The stream belongs to the device with the tag " + std::to_string(stream.device_tag()) +
      ", and was given to the device with the tag " + std::to_string(device_tag) + ".");
}

Unexpected BadEvent(const Event& event) { return BadEventCalled("The event", event); }

Unexpected BadCopy(DevicePtr destination, std::span<const std::byte> source) {
  return BadCopyCalled("The copy", destination, source);
}

Expected<StreamStatus> OfInspect(const DeviceIdentity& self, const Stream& stream) {
  Expected<void> refused = CheckInspect(self, stream);
  return ErrorOf(refused);
}

Expected<void> OfRecord(const DeviceIdentity& self, const Event& event, const Stream& stream) {
  if (Expected<void> ok = CheckInspect(self, stream); !ok) return ok;
  return BadEvent(event);
}

Expected<void> OfCopyAsync(const DeviceIdentity& self, DevicePtr destination,
                           std::span<const std::byte> source, const Stream& stream) {
  if (Expected<void> ok = CheckInspect(self, stream); !ok) return ok;
  return BadCopy(destination, source);
}

}  // namespace argument_errors

Expected<void> CheckCopyBatchAsync(const DeviceIdentity& self, std::span<const CopyEntry> entries,
                                   const Stream& stream) {
  if (Expected<void> ok = CheckInspect(self, stream); !ok) return ok;
  if (stream.kind() == StreamKind::kLegacyDefault) {
    return InvalidArgument("A batch cannot be enqueued on the legacy default stream.");
  }
  if (entries.empty()) return InvalidArgument("The batch has no entries.");
  for (size_t i = 0; i < entries.size(); ++i) {
    const CopyEntry& entry = entries[i];
    if (entry.source.empty()) {
      return InvalidArgument(Nth("Batch entry", i, entries.size()) + " has no bytes.");
    }
    if (!IsSoundCopy(entry.destination, entry.source)) {
      return BadCopyCalled(Nth("Batch entry", i, entries.size()), entry.destination, entry.source);
    }
  }
  return {};
}

Expected<void> CheckWaitAny(const DeviceIdentity& self, std::span<const Event* const> events) {
  if (Expected<void> ok = CheckProcess(self); !ok) return ok;
  for (size_t i = 0; i < events.size(); ++i) {
    if (events[i] == nullptr) {
      return InvalidArgument(Nth("Event", i, events.size()) + " is a null pointer.");
    }
    if (events[i]->owner() != self.owner) {
      return BadEventCalled(Nth("Event", i, events.size()), *events[i]);
    }
  }
  return {};
}

}  // namespace h2d
