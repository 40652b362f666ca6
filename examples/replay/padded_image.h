// The oracle: what a destination holds after a copy, computed without the library.
#ifndef H2D_EXAMPLES_REPLAY_PADDED_IMAGE_H_
#define H2D_EXAMPLES_REPLAY_PADDED_IMAGE_H_

#include <cstddef>
#include <span>

#include "h2d/examples/replay/tensors.h"

namespace h2d::replay {

// Writes the tensor's values and then its padding until `image` is full.
// REQUIRES: the values fit, and the size of `image` is a multiple of the element's.
void WritePaddedImage(const TensorView& tensor, std::span<std::byte> image);

}  // namespace h2d::replay

#endif  // H2D_EXAMPLES_REPLAY_PADDED_IMAGE_H_
