// Checks what a call asks for, and turns it into bytes.
#ifndef H2D_STAGER_INTERNAL_CHECKED_IMAGE_H_
#define H2D_STAGER_INTERNAL_CHECKED_IMAGE_H_

#include <cstdint>

#include "h2d/device/device_ptr.h"
#include "h2d/device/error.h"
#include "h2d/stager/image.h"
#include "h2d/stager/internal/image_bytes.h"

namespace h2d::internal {

// The destination's size in bytes. Errors: elements of 0 bytes; a size, or an end of the range,
// that 64 bits cannot hold.
Expected<uint64_t> CheckedDestination(const Destination& destination);

// The same for a destination that a mirror is bound to: also not null and not empty.
Expected<uint64_t> CheckedMirrorDestination(const Destination& destination);

// Why `image` cannot go to `destination`, in words. REQUIRES: it cannot.
Unexpected ImageError(const HostImage& image, const Destination& destination);

// Whether `image` can go to `destination`; then `*bytes` are its bytes: none for no values and no
// padding, whatever the destination. What makes it false: as `CheckedDestination`; more values than
// it holds; elements of another size; bytes to write and a null destination.
//
// On every copy's way, so the good case is inline, and a bad one is looked at again for its words.
inline bool MakeImage(const HostImage& image, const Destination& destination, ImageBytes* bytes) {
  if (image.count == 0 && image.pad == nullptr) {
    *bytes = ImageBytes{};
    return true;
  }
  uint64_t room = 0;
  uint64_t end = 0;
  const uint64_t element = destination.element_bytes;
  const bool good = !__builtin_mul_overflow(destination.count, element, &room) &&
                    !__builtin_add_overflow(destination.ptr.address(), room, &end) &&
                    element != 0 && image.element_bytes == element &&
                    image.count <= destination.count && !(destination.ptr.is_null() && room > 0);
  if (!good) [[unlikely]]
    return false;
  // No more values than the destination holds, whose size did not overflow: neither does theirs.
  const uint64_t value_bytes = image.count * image.element_bytes;
  *bytes = ImageBytes{.values = image.values,
                      .value_bytes = value_bytes,
                      .pad = image.pad,
                      .pad_bytes = image.pad != nullptr ? room - value_bytes : 0,
                      .element_bytes = image.element_bytes};
  return true;
}

// The same as an `Expected`, for where an error is put into more words.
inline Expected<ImageBytes> CheckedImage(const HostImage& image, const Destination& destination) {
  ImageBytes bytes;
  if (!MakeImage(image, destination, &bytes)) return ImageError(image, destination);
  return bytes;
}

}  // namespace h2d::internal

#endif  // H2D_STAGER_INTERNAL_CHECKED_IMAGE_H_
