// Filling and comparing the bytes of an image: values, then repeated padding.
#ifndef H2D_STAGER_INTERNAL_IMAGE_BYTES_H_
#define H2D_STAGER_INTERNAL_IMAGE_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace h2d::internal {

// A range of byte offsets; empty when begin == end.
struct ByteSpan {
  uint64_t begin = 0;
  uint64_t end = 0;

  constexpr uint64_t bytes() const noexcept { return end - begin; }
  constexpr bool empty() const noexcept { return begin == end; }
};

// An image whose sizes were checked: `value_bytes` bytes of values, then `pad_bytes` bytes of the
// padding element repeated. Both are multiples of `element_bytes`.
struct ImageBytes {
  const std::byte* values = nullptr;
  uint64_t value_bytes = 0;
  const std::byte* pad = nullptr;
  uint64_t pad_bytes = 0;
  uint32_t element_bytes = 1;

  constexpr uint64_t bytes() const noexcept { return value_bytes + pad_bytes; }
};

// `span` and what is missing to whole elements of `element` bytes. Elements are nearly always of a
// power of two, and then no division is needed, which takes as long as comparing half a KiB.
constexpr ByteSpan WholeElements(ByteSpan span, uint64_t element) noexcept {
  const uint64_t mask = element - 1;
  if ((element & mask) == 0) return {span.begin & ~mask, (span.end + mask) & ~mask};
  return {span.begin - span.begin % element, span.end + (element - span.end % element) % element};
}

inline uint64_t LoadWord(const std::byte* from) noexcept {
  uint64_t word;
  std::memcpy(&word, from, sizeof(word));
  return word;
}

// Whether two runs of bytes are equal. What changed usually did so in its first word, too: then the
// call is saved.
inline bool SameBytes(const std::byte* a, const std::byte* b, uint64_t bytes) noexcept {
  if (bytes >= sizeof(uint64_t) && LoadWord(a) != LoadWord(b)) return false;
  return bytes == 0 || std::memcmp(a, b, bytes) == 0;
}

void FillPadded(const ImageBytes& image, ByteSpan span, std::byte* to) noexcept;

// Writes the bytes of `span` of the image to `to`.
inline void Fill(const ImageBytes& image, ByteSpan span, std::byte* to) noexcept {
  if (span.end > image.value_bytes) return FillPadded(image, span, to);
  if (!span.empty()) std::memcpy(to, image.values + span.begin, span.bytes());
}

// From the first to the last byte in which the image and `held` differ within their first `bytes`
// bytes; empty when they are equal there. Bits are compared (I4): 0.0 and -0.0 differ, NaNs of
// equal bits do not.
ByteSpan Difference(const ImageBytes& image, const std::byte* held, uint64_t bytes) noexcept;

}  // namespace h2d::internal

#endif  // H2D_STAGER_INTERNAL_IMAGE_BYTES_H_
