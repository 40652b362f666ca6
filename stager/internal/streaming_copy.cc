#include "h2d/stager/internal/streaming_copy.h"

#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace h2d::internal {

#if defined(__x86_64__)
namespace {

constexpr uint64_t kLine = 64;

__attribute__((target("avx512f"))) void StoreLines(std::byte* to, const std::byte* from,
                                                   uint64_t lines) {
  for (uint64_t i = 0; i < lines; ++i) {
    const __m512i line = _mm512_loadu_si512(from + i * kLine);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i * kLine), line);
  }
  _mm_sfence();
}

bool HasWideStores() {
  static const bool has = __builtin_cpu_supports("avx512f") != 0;
  return has;
}

}  // namespace

void StreamingCopy(std::byte* to, const std::byte* from, uint64_t bytes) noexcept {
  if (bytes < kStreamingBytes || !HasWideStores()) {
    std::memcpy(to, from, bytes);
    return;
  }
  const uint64_t head = -reinterpret_cast<uintptr_t>(to) % kLine;
  const uint64_t lines = (bytes - head) / kLine;
  const uint64_t tail = head + lines * kLine;
  std::memcpy(to, from, head);
  StoreLines(to + head, from + head, lines);
  std::memcpy(to + tail, from + tail, bytes - tail);
}

#else

void StreamingCopy(std::byte* to, const std::byte* from, uint64_t bytes) noexcept {
  std::memcpy(to, from, bytes);
}

#endif

}  // namespace h2d::internal
