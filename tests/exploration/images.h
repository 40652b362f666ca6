// What the small worlds copy.
#ifndef H2D_TESTS_EXPLORATION_IMAGES_H_
#define H2D_TESTS_EXPLORATION_IMAGES_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "h2d/tests/support/stager_under_test.h"

namespace h2d::testing {

inline constexpr uint32_t kElements = 4;
inline constexpr uint64_t kImageBytes = kElements * sizeof(uint32_t);
using Image = std::array<uint32_t, kElements>;

// The first two differ in one element, so that a copy is trimmed; the third in all from both.
inline constexpr std::array<Image, 3> kImages = {Image{1, 2, 3, 4}, {1, 9, 3, 4}, {5, 6, 7, 8}};

inline HostImage ViewOf(const Image& image) {
  return {.values = reinterpret_cast<const std::byte*>(image.data()),
          .count = kElements,
          .element_bytes = sizeof(uint32_t)};
}

}  // namespace h2d::testing

#endif  // H2D_TESTS_EXPLORATION_IMAGES_H_
