#include "h2d/examples/replay/padded_image.h"

#include <algorithm>
#include <cstring>

namespace h2d::replay {
namespace {

template <class T>
void Write(const TensorValues<T>& tensor, std::span<std::byte> image) {
  const size_t value_bytes = tensor.values.size_bytes();
  if (value_bytes > 0) std::memcpy(image.data(), tensor.values.data(), value_bytes);
  if (value_bytes == image.size()) return;
  // One element of padding, and then as much as is there already.
  const std::span<std::byte> padding = image.subspan(value_bytes);
  std::memcpy(padding.data(), &tensor.pad, sizeof(T));
  for (size_t filled = sizeof(T); filled < padding.size();) {
    const size_t bytes = std::min(filled, padding.size() - filled);
    std::memcpy(padding.data() + filled, padding.data(), bytes);
    filled += bytes;
  }
}

}  // namespace

void WritePaddedImage(const TensorView& tensor, std::span<std::byte> image) {
  std::visit([&](const auto& values) { Write(values, image); }, tensor);
}

}  // namespace h2d::replay
