// Made-up content that is the same in every run.
#ifndef H2D_EXAMPLES_REPLAY_HASH_H_
#define H2D_EXAMPLES_REPLAY_HASH_H_

#include <cstdint>

namespace h2d::replay {

// Bits that depend on all bits of `seed` and `index` (the finaliser of splitmix64).
constexpr uint64_t HashOf(uint64_t seed, uint64_t index) noexcept {
  uint64_t x = seed * 0x9e3779b97f4a7c15ULL + index + 0x9e3779b97f4a7c15ULL;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
  return x ^ x >> 31;
}

}  // namespace h2d::replay

#endif  // H2D_EXAMPLES_REPLAY_HASH_H_
