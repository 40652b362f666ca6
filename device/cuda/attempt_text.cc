#include "h2d/device/cuda/attempt_text.h"

#include <cstdint>
#include <cstdio>

namespace h2d::internal {

std::string AddressText(const void* address) {
  char text[2 + 16 + 1];
  std::snprintf(text, sizeof(text), "0x%llx",
                static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(address)));
  return text;
}

std::string StreamText(const Stream& stream, int ordinal) {
  const std::string of_device = " of CUDA device " + std::to_string(ordinal);
  switch (stream.kind()) {
    case StreamKind::kLegacyDefault:
      return "the legacy default stream" + of_device;
    case StreamKind::kPerThreadDefault:
      return "the calling thread's default stream" + of_device;
    case StreamKind::kOrdinary:
      break;
  }
  return "stream " + std::to_string(stream.id()) + of_device;
}

std::string CopyText(DevicePtr destination, std::span<const std::byte> source, const Stream& stream,
                     int ordinal) {
  return "Copying " + std::to_string(source.size()) + " bytes from the host address " +
         AddressText(source.data()) + " to the device address " +
         AddressText(destination.pointer()) + " on " + StreamText(stream, ordinal);
}

std::string BatchText(std::span<const CopyEntry> entries, const Stream& stream, int ordinal) {
  return "Copying a batch of " + std::to_string(entries.size()) + " entries, the first of " +
         std::to_string(entries.front().source.size()) + " bytes to the device address " +
         AddressText(entries.front().destination.pointer()) + ", on " + StreamText(stream, ordinal);
}

}  // namespace h2d::internal
