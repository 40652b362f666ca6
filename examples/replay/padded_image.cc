#include "h2d/examples/replay/padded_image.h"

#include <cstring>

namespace h2d::replay {
namespace {

template <class T>
void Write(const TensorValues<T>& tensor, std::span<std::byte> image) {
  const size_t value_bytes = tensor.values.size_bytes();
  if (value_bytes > 0) std::memcpy(image.data(), tensor.values.data(), value_bytes);
  for (size_t at = value_bytes; at < image.size(); at += sizeof(T)) {
    std::memcpy(image.data() + at, &tensor.pad, sizeof(T));
  }
}

}  // namespace

void WritePaddedImage(const TensorView& tensor, std::span<std::byte> image) {
  std::visit([&](const auto& values) { Write(values, image); }, tensor);
}

}  // namespace h2d::replay
