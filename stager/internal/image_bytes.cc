#include "h2d/stager/internal/image_bytes.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace h2d::internal {
namespace {

constexpr uint64_t kWord = sizeof(uint64_t);

// The library's memcmp is the fastest comparison there is, but does not say where: equal chunks are
// passed over with it, and the chunk that differs is looked at word by word.
constexpr uint64_t kChunk = 256;

// The offset of the first byte in which `a` and `b` differ, or `bytes`.
uint64_t FirstMismatch(const std::byte* a, const std::byte* b, uint64_t bytes) noexcept {
  if (SameBytes(a, b, bytes)) return bytes;
  uint64_t at = 0;
  while (at + kChunk <= bytes && SameBytes(a + at, b + at, kChunk)) at += kChunk;
  for (; at + kWord <= bytes; at += kWord) {
    const uint64_t differing = DifferingBits(a + at, b + at);
    if (differing != 0) return at + static_cast<uint64_t>(std::countr_zero(differing)) / 8;
  }
  while (at < bytes && a[at] == b[at]) ++at;
  return at;
}

// One past the last byte in which `a` and `b` differ, or 0.
uint64_t MismatchEnd(const std::byte* a, const std::byte* b, uint64_t bytes) noexcept {
  uint64_t end = bytes;
  while (end >= kChunk && SameBytes(a + end - kChunk, b + end - kChunk, kChunk)) end -= kChunk;
  for (; end >= kWord; end -= kWord) {
    const uint64_t differing = DifferingBits(a + end - kWord, b + end - kWord);
    if (differing != 0) return end - static_cast<uint64_t>(std::countl_zero(differing)) / 8;
  }
  while (end > 0 && a[end - 1] == b[end - 1]) --end;
  return end;
}

// The same two against `pad` repeated, of `element` bytes. A run of one pattern equals itself
// shifted by one element, so the run is compared with itself.
uint64_t FirstPadMismatch(const std::byte* held, const std::byte* pad, uint32_t element,
                          uint64_t bytes) noexcept {
  const uint64_t first = FirstMismatch(held, pad, element);
  if (first < element || bytes == element) return first;
  return element + FirstMismatch(held, held + element, bytes - element);
}

uint64_t PadMismatchEnd(const std::byte* held, const std::byte* pad, uint32_t element,
                        uint64_t bytes) noexcept {
  const uint64_t last = bytes - element;
  const uint64_t end = MismatchEnd(held + last, pad, element);
  if (end > 0) return last + end;
  return MismatchEnd(held, held + element, last);
}

void FillPattern(std::byte* to, uint64_t bytes, const std::byte* pad, uint32_t element,
                 uint64_t phase) noexcept {
  // The first element, rotated to where the span begins within it; then what is filled is doubled.
  const uint64_t head = std::min<uint64_t>(bytes, element);
  for (uint64_t i = 0; i < head; ++i) to[i] = pad[(phase + i) % element];
  for (uint64_t filled = head; filled < bytes;) {
    const uint64_t more = std::min(filled, bytes - filled);
    std::memcpy(to + filled, to, more);
    filled += more;
  }
}

}  // namespace

void FillPadded(const ImageBytes& image, ByteSpan span, std::byte* to) noexcept {
  const uint64_t values_end = std::min(span.end, image.value_bytes);
  if (span.begin < values_end) {
    std::memcpy(to, image.values + span.begin, values_end - span.begin);
    to += values_end - span.begin;
  }
  const uint64_t pad_begin = std::max(span.begin, image.value_bytes);
  if (pad_begin < span.end) {
    const uint64_t phase = (pad_begin - image.value_bytes) % image.element_bytes;
    FillPattern(to, span.end - pad_begin, image.pad, image.element_bytes, phase);
  }
}

ByteSpan SearchDifference(const std::byte* a, const std::byte* b, uint64_t bytes) noexcept {
  const uint64_t begin = FirstMismatch(a, b, bytes);
  if (begin == bytes) return {};
  return {begin, MismatchEnd(a, b, bytes)};
}

ByteSpan PaddedDifference(const ImageBytes& image, const std::byte* held, uint64_t bytes) noexcept {
  const uint64_t values = image.value_bytes;
  const uint64_t padding = bytes - values;
  const std::byte* const tail = held + values;
  uint64_t begin = FirstMismatch(image.values, held, values);
  if (begin == values) {
    begin += FirstPadMismatch(tail, image.pad, image.element_bytes, padding);
    if (begin == bytes) return {};
  }
  const uint64_t end = PadMismatchEnd(tail, image.pad, image.element_bytes, padding);
  if (end > 0) return {begin, values + end};
  return {begin, MismatchEnd(image.values, held, values)};
}

}  // namespace h2d::internal
