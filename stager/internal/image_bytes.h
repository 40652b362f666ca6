// Filling and comparing the bytes of an image: values, then repeated padding.
#ifndef H2D_STAGER_INTERNAL_IMAGE_BYTES_H_
#define H2D_STAGER_INTERNAL_IMAGE_BYTES_H_

#include <bit>
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

// Which of the first eight bytes of two runs differ, as bits. A word's lowest address is its lowest
// byte on every host that CUDA runs on.
inline uint64_t DifferingBits(const std::byte* a, const std::byte* b) noexcept {
  static_assert(std::endian::native == std::endian::little);
  uint64_t words[2];
  std::memcpy(&words[0], a, sizeof(uint64_t));
  std::memcpy(&words[1], b, sizeof(uint64_t));
  return words[0] ^ words[1];
}

// Whether two runs of bytes are equal. What changed usually did so in its first word, too: then the
// call is saved.
inline bool SameBytes(const std::byte* a, const std::byte* b, uint64_t bytes) noexcept {
  if (bytes >= sizeof(uint64_t) && DifferingBits(a, b) != 0) return false;
  return bytes == 0 || std::memcmp(a, b, bytes) == 0;
}

ByteSpan SearchDifference(const std::byte* a, const std::byte* b, uint64_t bytes) noexcept;

// From the first to the last byte in which two runs of at least a word differ, if they do in their
// first and in their last word, as what changed usually does; else empty, and nothing was searched.
inline ByteSpan DifferenceAtEnds(const std::byte* a, const std::byte* b, uint64_t bytes) noexcept {
  constexpr uint64_t kWord = sizeof(uint64_t);
  const uint64_t first = DifferingBits(a, b);
  const uint64_t last = DifferingBits(a + bytes - kWord, b + bytes - kWord);
  if (first == 0 || last == 0) return {};
  return {static_cast<uint64_t>(std::countr_zero(first)) / 8,
          bytes - static_cast<uint64_t>(std::countl_zero(last)) / 8};
}

// From the first to the last byte in which two runs differ; empty when they are equal.
inline ByteSpan DifferenceOf(const std::byte* a, const std::byte* b, uint64_t bytes) noexcept {
  if (bytes >= sizeof(uint64_t)) {
    const ByteSpan ends = DifferenceAtEnds(a, b, bytes);
    if (!ends.empty()) return ends;
  }
  return SearchDifference(a, b, bytes);
}

void FillPadded(const ImageBytes& image, ByteSpan span, std::byte* to) noexcept;

// Writes the bytes of `span` of the image to `to`.
inline void Fill(const ImageBytes& image, ByteSpan span, std::byte* to) noexcept {
  if (span.end > image.value_bytes) return FillPadded(image, span, to);
  if (!span.empty()) std::memcpy(to, image.values + span.begin, span.bytes());
}

ByteSpan PaddedDifference(const ImageBytes& image, const std::byte* held, uint64_t bytes) noexcept;

// From the first to the last byte in which the image and `held` differ within their first `bytes`
// bytes; empty when they are equal there. Bits are compared (I4): 0.0 and -0.0 differ, NaNs of
// equal bits do not.
inline ByteSpan Difference(const ImageBytes& image, const std::byte* held,
                           uint64_t bytes) noexcept {
  if (bytes > image.value_bytes) return PaddedDifference(image, held, bytes);
  return DifferenceOf(image.values, held, bytes);
}

}  // namespace h2d::internal

#endif  // H2D_STAGER_INTERNAL_IMAGE_BYTES_H_
