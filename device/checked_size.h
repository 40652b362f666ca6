// Sizes in bytes that say when they overflow (I10).
#ifndef H2D_DEVICE_CHECKED_SIZE_H_
#define H2D_DEVICE_CHECKED_SIZE_H_

#include <cstdint>
#include <optional>

namespace h2d {

// `count * element_bytes`, or nothing when 64 bits cannot hold it.
constexpr std::optional<uint64_t> CheckedBytes(uint64_t count, uint64_t element_bytes) noexcept {
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(count, element_bytes, &bytes)) return std::nullopt;
  return bytes;
}

// `a + b`, or nothing when 64 bits cannot hold it.
constexpr std::optional<uint64_t> CheckedSum(uint64_t a, uint64_t b) noexcept {
  uint64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

// The smallest multiple of `unit` (not 0) that is at least `bytes`, or nothing when 64 bits
// cannot hold it.
constexpr std::optional<uint64_t> RoundedUp(uint64_t bytes, uint64_t unit) noexcept {
  const uint64_t rest = bytes % unit;
  return rest == 0 ? std::optional<uint64_t>(bytes) : CheckedSum(bytes, unit - rest);
}

}  // namespace h2d

#endif  // H2D_DEVICE_CHECKED_SIZE_H_
