// One copy of a batch, while it is made.
#ifndef H2D_STAGER_INTERNAL_BATCH_ITEM_H_
#define H2D_STAGER_INTERNAL_BATCH_ITEM_H_

#include <cstddef>
#include <cstdint>

#include "h2d/device/device_ptr.h"
#include "h2d/stager/image.h"
#include "h2d/stager/internal/image_bytes.h"

namespace h2d::internal {

class MirrorState;

// How many entries go to the device in one batch call, and how many copies make a batch.
inline constexpr size_t kMaxBatchEntries = 64;

struct BatchItem {
  // What the caller asks.
  Destination destination;        // of a copy without mirror
  MirrorState* mirror = nullptr;  // of one with
  HostImage image;

  // What the call finds, anew after each wait.
  ImageBytes bytes;  // of the image
  DevicePtr base;    // where the image begins
  ByteSpan span;     // of the image, to be sent

  uint64_t begin() const noexcept { return base.address(); }
  uint64_t end() const noexcept { return base.address() + bytes.bytes(); }
};

}  // namespace h2d::internal

#endif  // H2D_STAGER_INTERNAL_BATCH_ITEM_H_
