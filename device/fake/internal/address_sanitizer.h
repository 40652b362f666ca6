// Memory that nobody but the simulator may touch for a while, in builds with address sanitizer; in
// others nothing happens here.
#ifndef H2D_DEVICE_FAKE_INTERNAL_ADDRESS_SANITIZER_H_
#define H2D_DEVICE_FAKE_INTERNAL_ADDRESS_SANITIZER_H_

#include <cstddef>
#include <cstring>

#if defined(__SANITIZE_ADDRESS__)
#define H2D_FAKE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define H2D_FAKE_ASAN 1
#endif
#endif
#ifdef H2D_FAKE_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace h2d::fake_internal {

#ifdef H2D_FAKE_ASAN

inline constexpr bool kAddressSanitizer = true;

inline void PoisonBytes(const std::byte* data, size_t bytes) noexcept {
  ASAN_POISON_MEMORY_REGION(data, bytes);
}
inline void UnpoisonBytes(const std::byte* data, size_t bytes) noexcept {
  ASAN_UNPOISON_MEMORY_REGION(data, bytes);
}

// The loops below must not become calls of memcpy and memcmp, which the sanitizer checks: hence the
// volatile reads.
__attribute__((no_sanitize("address"))) inline void CopyPoisoned(std::byte* to,
                                                                 const std::byte* from,
                                                                 size_t bytes) noexcept {
  const volatile auto* source = from;
  for (size_t i = 0; i < bytes; ++i) to[i] = source[i];
}
__attribute__((no_sanitize("address"))) inline bool EqualPoisoned(const std::byte* a,
                                                                  const std::byte* b,
                                                                  size_t bytes) noexcept {
  const volatile auto* other = b;
  for (size_t i = 0; i < bytes; ++i) {
    if (a[i] != other[i]) return false;
  }
  return true;
}

#else

inline constexpr bool kAddressSanitizer = false;

inline void PoisonBytes(const std::byte*, size_t) noexcept {}
inline void UnpoisonBytes(const std::byte*, size_t) noexcept {}
inline void CopyPoisoned(std::byte* to, const std::byte* from, size_t bytes) noexcept {
  std::memcpy(to, from, bytes);
}
inline bool EqualPoisoned(const std::byte* a, const std::byte* b, size_t bytes) noexcept {
  return std::memcmp(a, b, bytes) == 0;
}

#endif

}  // namespace h2d::fake_internal

#endif  // H2D_DEVICE_FAKE_INTERNAL_ADDRESS_SANITIZER_H_
