// Every byte arrives and none beside it is touched, at any size and alignment.
#include "h2d/stager/internal/streaming_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace h2d::internal {
namespace {

constexpr uint64_t kMargin = 128;
constexpr std::byte kUntouched{0xA5};

// Whether `bytes` bytes go from an address `from` behind a line's start to one `to` behind it.
bool CopiesExactly(uint64_t bytes, uint64_t from, uint64_t to) {
  std::vector<std::byte> source(bytes + 2 * kMargin);
  for (size_t i = 0; i < source.size(); ++i)
    source[i] = static_cast<std::byte>((i * 2654435761U + i / 251) >> 5);
  std::vector<std::byte> target(bytes + 4 * kMargin, kUntouched);
  const auto start = reinterpret_cast<uintptr_t>(target.data());
  const uint64_t at = kMargin + -start % 64 + to;
  StreamingCopy(target.data() + at, source.data() + from, bytes);
  const auto first = target.begin() + static_cast<std::ptrdiff_t>(at);
  const auto last = first + static_cast<std::ptrdiff_t>(bytes);
  const auto untouched = [](std::byte b) { return b == kUntouched; };
  return std::equal(first, last, source.begin() + static_cast<std::ptrdiff_t>(from)) &&
         std::all_of(target.begin(), first, untouched) &&
         std::all_of(last, target.end(), untouched);
}

TEST(StreamingCopy, CopiesEachByteAndNoOther) {
  for (const uint64_t base : {uint64_t{0}, uint64_t{64}, kStreamingBytes, 3 * kStreamingBytes}) {
    for (const uint64_t more : {0, 1, 63, 64, 65, 127}) {
      for (const uint64_t to : {0, 1, 31, 63}) {
        for (const uint64_t from : {0, 1, 64}) {
          EXPECT_TRUE(CopiesExactly(base + more, from, to))
              << base + more << " bytes from " << from << " to " << to;
        }
      }
    }
  }
  EXPECT_TRUE(CopiesExactly(kStreamingBytes - 1, 3, 5));
}

}  // namespace
}  // namespace h2d::internal
