// The argument checks of `Device` that are the same in every backend, with the same sentences.
//
// How a backend uses it. It keeps one `DeviceIdentity` and opens each method with the check of the
// same name; the answer is success or the error to return:
//
//   Expected<void> MyDevice::Record(Event& event, const Stream& stream) {
//     if (Expected<void> ok = CheckRecord(identity_, event, stream); !ok) return ok;
//     ...
//   Expected<EventState> MyDevice::Query(const Event& event) {
//     if (Expected<void> ok = CheckQuery(identity_, event); !ok) return ErrorOf(ok);
//
// What each asks, in this order:
//
// - CheckProcess (for Trim, KindOf, CreateEvent): not a forked child
// - CheckAllocatePinned: process, bytes not 0
// - CheckCopyAsync: process, stream, destination, source
// - CheckCopyBatchAsync: process, stream, not the legacy one, not empty, entries
// - CheckRecord, CheckWaitEvent: process, stream, event
// - CheckQuery: process, event
// - CheckWaitAny: process, every event
// - CheckInspect: process, stream
//
// What needs knowledge of the backend (ranges outside an allocation, destroyed handles) stays with
// the backend. A zero-byte `CopyAsync` passes with null pointers: the backend then does nothing.
//
// Cost: a check that passes is a handful of inlined comparisons; texts are made out of line. An
// `Expected` of another type costs more than the check itself, so a backend that cares opens with
// `if (!IsOwnStream(identity_, stream)) return argument_errors::OfInspect(identity_, stream);`.
#ifndef H2D_DEVICE_ARGUMENT_CHECKS_H_
#define H2D_DEVICE_ARGUMENT_CHECKS_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "h2d/device/device.h"
#include "h2d/device/device_ptr.h"
#include "h2d/device/error.h"
#include "h2d/device/event.h"
#include "h2d/device/handle_owner.h"
#include "h2d/device/stream.h"

namespace h2d {

// Who the device is: what its handles carry.
struct DeviceIdentity {
  const HandleOwner* owner = nullptr;  // of its events; not null, lives as long as the device
  uint64_t device_tag = 0;             // of its streams
};

namespace argument_errors {

// The sentences, whatever the check that asks.
Unexpected ForkedChild();
Unexpected NoBytes();
Unexpected ForeignStream(const Stream& stream, uint64_t device_tag);
Unexpected BadEvent(const Event& event);                                       // moved or foreign
Unexpected BadCopy(DevicePtr destination, std::span<const std::byte> source);  // null or too long

// The sentence for a check that failed. REQUIRES: it did.
Expected<StreamStatus> OfInspect(const DeviceIdentity& self, const Stream& stream);
Expected<void> OfRecord(const DeviceIdentity& self, const Event& event, const Stream& stream);
Expected<void> OfCopyAsync(const DeviceIdentity& self, DevicePtr destination,
                           std::span<const std::byte> source, const Stream& stream);

}  // namespace argument_errors

// Whether the copy has no bytes, or has both addresses and ends within the address space.
inline bool IsSoundCopy(DevicePtr destination, std::span<const std::byte> source) noexcept {
  if (source.empty()) return true;
  return !destination.is_null() && source.data() != nullptr &&
         source.size() <= std::numeric_limits<uint64_t>::max() - destination.address();
}

// Whether a call on `stream` may go on, as far as the process and the stream are asked.
inline bool IsOwnStream(const DeviceIdentity& self, const Stream& stream) noexcept {
  return self.owner->in_own_process() && stream.device_tag() == self.device_tag;
}

inline Expected<void> CheckProcess(const DeviceIdentity& self) {
  if (!self.owner->in_own_process()) [[unlikely]]
    return argument_errors::ForkedChild();
  return {};
}

inline Expected<void> CheckAllocatePinned(const DeviceIdentity& self, uint64_t bytes) {
  if (!self.owner->in_own_process()) [[unlikely]]
    return argument_errors::ForkedChild();
  if (bytes == 0) [[unlikely]]
    return argument_errors::NoBytes();
  return {};
}

inline Expected<void> CheckInspect(const DeviceIdentity& self, const Stream& stream) {
  if (!self.owner->in_own_process()) [[unlikely]]
    return argument_errors::ForkedChild();
  if (stream.device_tag() != self.device_tag) [[unlikely]] {
    return argument_errors::ForeignStream(stream, self.device_tag);
  }
  return {};
}

inline Expected<void> CheckQuery(const DeviceIdentity& self, const Event& event) {
  if (!self.owner->in_own_process()) [[unlikely]]
    return argument_errors::ForkedChild();
  // A moved-from event has no owner and is refused by the same comparison.
  if (event.owner() != self.owner) [[unlikely]]
    return argument_errors::BadEvent(event);
  return {};
}

// The checks of a step's path are one condition each: to hand on the answer of another check costs
// more than to ask.
inline Expected<void> CheckRecord(const DeviceIdentity& self, const Event& event,
                                  const Stream& stream) {
  if (IsOwnStream(self, stream) && event.owner() == self.owner) [[likely]]
    return {};
  return argument_errors::OfRecord(self, event, stream);
}

inline Expected<void> CheckWaitEvent(const DeviceIdentity& self, const Stream& stream,
                                     const Event& event) {
  return CheckRecord(self, event, stream);
}

inline Expected<void> CheckCopyAsync(const DeviceIdentity& self, DevicePtr destination,
                                     std::span<const std::byte> source, const Stream& stream) {
  if (IsOwnStream(self, stream) && IsSoundCopy(destination, source)) [[likely]]
    return {};
  return argument_errors::OfCopyAsync(self, destination, source, stream);
}

Expected<void> CheckCopyBatchAsync(const DeviceIdentity& self, std::span<const CopyEntry> entries,
                                   const Stream& stream);

Expected<void> CheckWaitAny(const DeviceIdentity& self, std::span<const Event* const> events);

}  // namespace h2d

#endif  // H2D_DEVICE_ARGUMENT_CHECKS_H_
