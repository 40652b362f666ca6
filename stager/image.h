// The bytes that a copy is to leave at its destination: values, then padding.
#ifndef H2D_STAGER_IMAGE_H_
#define H2D_STAGER_IMAGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <ranges>
#include <span>

#include "h2d/device/element.h"

namespace h2d::internal {

// A view of a call's values and padding value with their type erased, so that everything behind the
// templates is compiled once. Lives no longer than the call.
struct HostImage {
  const std::byte* values = nullptr;
  uint64_t count = 0;  // elements
  uint32_t element_bytes = 0;
  const std::byte* pad =
      nullptr;  // one element, or null: the rest of the destination stays as it is

  template <HostRange R>
  static HostImage Of(const R& range, const std::optional<ElementOf<R>>& pad) noexcept {
    return HostImage{
        .values = reinterpret_cast<const std::byte*>(std::ranges::data(range)),
        .count = static_cast<uint64_t>(std::ranges::size(range)),
        .element_bytes = sizeof(ElementOf<R>),
        .pad = pad ? reinterpret_cast<const std::byte*>(std::addressof(*pad)) : nullptr,
    };
  }
};

}  // namespace h2d::internal

#endif  // H2D_STAGER_IMAGE_H_
