#include "h2d/device/cuda/device_tags.h"

#include <cstddef>
#include <vector>

#include "h2d/device/stream.h"
#include "h2d/device/sync.h"

namespace h2d::internal {
namespace {

// Never destroyed: handles with static storage duration may ask at exit.
struct Tags {
  Mutex mutex;
  std::vector<uint64_t> of_ordinal H2D_GUARDED_BY(mutex);
};

Tags& AllTags() {
  static auto* const tags = new Tags;
  return *tags;
}

}  // namespace

uint64_t CudaDeviceTag(int ordinal) {
  Tags& tags = AllTags();
  const MutexLock lock(tags.mutex);
  const auto index = static_cast<size_t>(ordinal);
  while (tags.of_ordinal.size() <= index) tags.of_ordinal.push_back(NextDeviceTag());
  return tags.of_ordinal[index];
}

uint64_t CudaMemorySpace() noexcept {
  static const uint64_t space = NextDeviceTag();
  return space;
}

}  // namespace h2d::internal
