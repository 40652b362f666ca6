#include "h2d/stager/internal/checked_image.h"

#include <string>

#include "h2d/device/checked_size.h"

namespace h2d::internal {

Expected<uint64_t> CheckedDestination(const Destination& destination) {
  if (destination.element_bytes == 0) {
    return InvalidArgument("The destination's element_bytes is 0.");
  }
  const auto bytes = CheckedBytes(destination.count, destination.element_bytes);
  if (!bytes || !CheckedSum(destination.ptr.address(), *bytes)) {
    return InvalidArgument("The destination of " + std::to_string(destination.count) +
                           " elements of " + std::to_string(destination.element_bytes) +
                           " bytes at address " + std::to_string(destination.ptr.address()) +
                           " reaches beyond 64 bits.");
  }
  return *bytes;
}

Expected<uint64_t> CheckedMirrorDestination(const Destination& destination) {
  auto bytes = CheckedDestination(destination);
  if (!bytes) return bytes;
  if (destination.ptr.is_null()) return InvalidArgument("The mirror's destination is null.");
  if (*bytes == 0) return InvalidArgument("The mirror's destination holds no elements.");
  return bytes;
}

Unexpected ImageError(const HostImage& image, const Destination& destination) {
  if (auto room = CheckedDestination(destination); !room) return ErrorOf(room);
  if (image.element_bytes != destination.element_bytes) {
    return InvalidArgument("The values have elements of " + std::to_string(image.element_bytes) +
                           " bytes and the destination of " +
                           std::to_string(destination.element_bytes) + " bytes.");
  }
  if (image.count > destination.count) {
    return InvalidArgument("There are " + std::to_string(image.count) +
                           " values for a destination of " + std::to_string(destination.count) +
                           " elements.");
  }
  return InvalidArgument("The destination of " + std::to_string(destination.count) +
                         " elements of " + std::to_string(destination.element_bytes) +
                         " bytes is null.");
}

}  // namespace h2d::internal
