#include "h2d/examples/replay/block_pool.h"

namespace h2d::replay {

BlockPool::BlockPool(uint32_t size) {
  free_.reserve(size);
  for (uint32_t block = size; block > 0; --block) free_.push_back(static_cast<int32_t>(block - 1));
}

bool BlockPool::Grow(std::vector<int32_t>& owned, uint32_t count) {
  if (count > owned.size() && count - owned.size() > free_.size()) return false;
  while (owned.size() < count) {
    owned.push_back(free_.back());
    free_.pop_back();
  }
  return true;
}

void BlockPool::Release(std::vector<int32_t>& owned) {
  while (!owned.empty()) {
    free_.push_back(owned.back());
    owned.pop_back();
  }
}

}  // namespace h2d::replay
