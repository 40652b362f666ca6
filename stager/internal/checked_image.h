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

// The bytes of `image` for `destination`; none for no values and no padding, whatever the
// destination. Errors: as `CheckedDestination`; more values than it holds; elements of another
// size; bytes to write and a null destination.
Expected<ImageBytes> CheckedImage(const HostImage& image, const Destination& destination);

}  // namespace h2d::internal

#endif  // H2D_STAGER_INTERNAL_CHECKED_IMAGE_H_
