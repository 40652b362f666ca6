// The mirror of the little stager.
#ifndef H2D_TESTS_WRONG_STAGERS_LITTLE_MIRROR_H_
#define H2D_TESTS_WRONG_STAGERS_LITTLE_MIRROR_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "h2d/device/device.h"
#include "h2d/device/sync.h"
#include "h2d/stager/image.h"
#include "h2d/tests/wrong_stagers/flaw.h"
#include "h2d/tests/wrong_stagers/little_ring.h"

namespace h2d::testing {

using ImageBytes = std::vector<uint8_t>;

// The values and the padding of a call, for a destination of `capacity` elements.
ImageBytes BytesOfImage(const internal::HostImage& image, uint64_t capacity);

struct LittleMirror {
  // What differs between what is known and `image`, in bytes, from an element's start to another's;
  // empty when nothing does.
  struct Span {
    size_t first = 0;
    size_t bytes = 0;
  };
  Span Difference(const ImageBytes& image, size_t value_bytes, Flaw flaw) const;

  void Forget(Flaw flaw);
  void Learn(const ImageBytes& image);
  uint64_t size() const noexcept { return known.size(); }

  Mutex mutex;
  Destination destination;
  std::vector<int16_t> known;  // -1: not known
  Origin origin;
};

}  // namespace h2d::testing

#endif  // H2D_TESTS_WRONG_STAGERS_LITTLE_MIRROR_H_
