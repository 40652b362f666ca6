// The blocks of a paged key-value cache.
#ifndef H2D_EXAMPLES_REPLAY_BLOCK_POOL_H_
#define H2D_EXAMPLES_REPLAY_BLOCK_POOL_H_

#include <cstdint>
#include <vector>

namespace h2d::replay {

// How many blocks of `block_size` tokens hold `tokens` tokens.
constexpr uint32_t BlocksFor(uint32_t tokens, uint32_t block_size) noexcept {
  return tokens / block_size + (tokens % block_size != 0 ? 1 : 0);
}

// Hands out block numbers 0 .. size - 1. A block has one owner: the list it was appended to.
class BlockPool {
 public:
  explicit BlockPool(uint32_t size);

  // Appends blocks to `owned` until it has `count`; when too few are free, changes nothing and
  // answers false.
  bool Grow(std::vector<int32_t>& owned, uint32_t count);

  // Takes all of `owned` back and empties it.
  void Release(std::vector<int32_t>& owned);

  uint32_t free() const noexcept { return static_cast<uint32_t>(free_.size()); }

 private:
  std::vector<int32_t> free_;  // the last one goes first
};

}  // namespace h2d::replay

#endif  // H2D_EXAMPLES_REPLAY_BLOCK_POOL_H_
