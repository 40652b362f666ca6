#include "h2d/tests/wrong_stagers/little_mirror.h"

#include <algorithm>
#include <cstring>

namespace h2d::testing {
namespace {

// Whether two elements, one of them perhaps unknown, are the same for a stager with this flaw.
bool Same(const int16_t* known, const uint8_t* element, size_t bytes, Flaw flaw) {
  const bool equal = std::equal(element, element + bytes, known);
  if (bytes != 4 || (flaw != Flaw::kZeroesAreEqual && flaw != Flaw::kNansDiffer)) return equal;
  if (std::any_of(known, known + bytes, [](int16_t byte) { return byte < 0; })) return false;
  uint8_t old_bytes[4];
  std::copy_n(known, 4, old_bytes);
  float old_value;
  float new_value;
  std::memcpy(&old_value, old_bytes, 4);
  std::memcpy(&new_value, element, 4);
  if (flaw == Flaw::kNansDiffer) return equal && new_value == new_value;
  return equal || old_value == new_value;
}

}  // namespace

ImageBytes BytesOfImage(const internal::HostImage& image, uint64_t capacity) {
  const auto* values = reinterpret_cast<const uint8_t*>(image.values);
  ImageBytes bytes(values, values + image.count * image.element_bytes);
  const auto* pad = reinterpret_cast<const uint8_t*>(image.pad);
  for (uint64_t i = image.count; pad != nullptr && i < capacity; ++i) {
    bytes.insert(bytes.end(), pad, pad + image.element_bytes);
  }
  return bytes;
}

LittleMirror::Span LittleMirror::Difference(const ImageBytes& image, size_t value_bytes,
                                            Flaw flaw) const {
  const size_t element = destination.element_bytes;
  const size_t compared = flaw == Flaw::kPaddingUnseen ? value_bytes : image.size();
  Span span;
  for (size_t at = 0; at < compared; at += element) {
    const bool unknown = known[at] < 0;
    if (flaw == Flaw::kTrimsOverUnknownBytes && unknown && span.bytes != 0) continue;
    if (Same(&known[at], &image[at], element, flaw)) continue;
    if (span.bytes == 0) span.first = at;
    span.bytes = at + element - span.first;
  }
  return span;
}

void LittleMirror::Forget(Flaw flaw) {
  std::fill(known.begin(), known.end(), int16_t{-1});
  if (flaw == Flaw::kForgetsOrder) origin = Origin();
}

void LittleMirror::Learn(const ImageBytes& image) {
  std::copy(image.begin(), image.end(), known.begin());
}

}  // namespace h2d::testing
