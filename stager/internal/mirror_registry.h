// Which ranges of one device memory have a live mirror.
#ifndef H2D_STAGER_INTERNAL_MIRROR_REGISTRY_H_
#define H2D_STAGER_INTERNAL_MIRROR_REGISTRY_H_

#include <cstdint>
#include <map>
#include <memory>

#include "h2d/device/device_ptr.h"
#include "h2d/device/error.h"
#include "h2d/device/sync.h"

namespace h2d::internal {

// How often something other than a mirror wrote its range. A mirror that finds the count moved on
// knows nothing any more.
using ForgetCount = Atomic<uint64_t>;

// Shared by all stagers whose devices address the same memory. Keeps live mirrors disjoint, and
// makes those forget that a plain copy has overwritten (I4). Thread-safe.
class MirrorRegistry {
 public:
  // The registry of the memory named by `Device::MemorySpace`. Lives as long as somebody shares it.
  static std::shared_ptr<MirrorRegistry> Of(uint64_t memory_space);

  // Enters a mirror of the `bytes` bytes (not 0, no overflow) at `begin`. `forgets` is counted up
  // by overlapping plain copies until the mirror is removed.
  // Errors: another live mirror overlaps the range.
  Expected<void> Add(DevicePtr begin, uint64_t bytes, ForgetCount* forgets);
  void Remove(DevicePtr begin) noexcept;

  // Removes the mirror at `from` and enters it at the new range, or changes nothing.
  Expected<void> Move(DevicePtr from, DevicePtr begin, uint64_t bytes);

  // Makes the mirrors that overlap a range forget, after something wrote it or may have.
  void ForgetOverlapping(DevicePtr begin, uint64_t bytes) noexcept {
    if (live_.Load() != 0) ForgetOverlappingOf(begin, bytes);
  }

 private:
  struct Entry {
    uint64_t end;
    ForgetCount* forgets;
  };
  using Entries = std::map<uint64_t, Entry>;  // by first address; disjoint

  void ForgetOverlappingOf(DevicePtr begin, uint64_t bytes) noexcept;
  Entries::iterator FirstOverlap(uint64_t begin, uint64_t end) H2D_REQUIRES(mutex_);
  Expected<void> AddLocked(DevicePtr begin, uint64_t bytes, ForgetCount* forgets)
      H2D_REQUIRES(mutex_);

  // Plain copies of programs without mirrors take no lock.
  Atomic<uint64_t> live_{0};
  Mutex mutex_;
  Entries entries_ H2D_GUARDED_BY(mutex_);
};

}  // namespace h2d::internal

#endif  // H2D_STAGER_INTERNAL_MIRROR_REGISTRY_H_
