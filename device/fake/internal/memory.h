// The simulated machine's memory: device allocations and page-locked blocks.
#ifndef H2D_DEVICE_FAKE_INTERNAL_MEMORY_H_
#define H2D_DEVICE_FAKE_INTERNAL_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "h2d/device/device_ptr.h"
#include "h2d/device/error.h"
#include "h2d/device/fake/internal/clock.h"
#include "h2d/device/fake/internal/operation_info.h"
#include "h2d/device/fake/internal/shadow.h"
#include "h2d/device/pinned_buffer.h"

namespace h2d::fake_internal {

struct AlignedDelete {
  void operator()(std::byte* bytes) const noexcept {
    ::operator delete[](bytes, std::align_val_t{PinnedBuffer::kAlignment});
  }
};
using AlignedBytes = std::unique_ptr<std::byte[], AlignedDelete>;

struct CDelete {
  void operator()(std::byte* bytes) const noexcept { std::free(bytes); }
};

struct DeviceAllocation {
  uint64_t base = 0;
  uint64_t bytes = 0;
  uint32_t id = 0;
  std::unique_ptr<std::byte[], CDelete> data;  // from calloc; null once freed
  Shadow shadow;

  MemoryRef Ref(uint64_t address, uint64_t size) const noexcept {
    return {MemorySpaceKind::kDevice, id, address - base, size};
  }
};

// Addresses are simulated: far from any host address, never given out twice, with a gap behind each
// allocation so that an overrun by one is an error and not a neighbour.
class DeviceMemory {
 public:
  explicit DeviceMemory(uint64_t limit_bytes) noexcept : limit_bytes_(limit_bytes) {}

  Expected<DeviceAllocation*> Allocate(uint64_t bytes, std::string_view name, Names& names);
  // `in_use`: operations may still touch it; the host's memory itself is kept until a later call.
  void Free(DeviceAllocation& allocation, bool in_use);

  // The allocation, freed ones included, that holds `address`; null when none does.
  DeviceAllocation* Find(uint64_t address) noexcept;

 private:
  static constexpr uint64_t kFirstAddress = uint64_t{0xd0} << 56;  // not canonical on x86-64
  static constexpr uint64_t kAlignment = 256;

  // Both in the order of addresses, which is that of the calls.
  std::vector<uint64_t> bases_;
  std::vector<std::unique_ptr<DeviceAllocation>> allocations_;
  std::vector<std::unique_ptr<std::byte[], CDelete>> buried_;  // freed while in use
  uint64_t next_address_ = kFirstAddress;
  uint64_t bytes_ = 0;
  uint64_t limit_bytes_;
};

struct PinnedBlock {
  AlignedBytes data;
  uint64_t bytes = 0;  // what the driver gave; at least what was asked
  uint64_t used = 0;   // what its present or last owner asked: the rest is nobody's
  uint32_t id = 0;
  bool cached = false;  // nobody's
  Shadow shadow;
  std::vector<AccessRef> watched;  // its source reads whose bytes are kept, and some that were
  Clock released;  // what happened before its release: acquired by whoever gets it next

  bool Holds(const std::byte* at) const noexcept { return at < data.get() + used; }
  // All of `memory`, which begins inside.
  bool Holds(std::span<const std::byte> memory) const noexcept {
    return Holds(memory.data()) &&
           memory.size() <= static_cast<uint64_t>(data.get() + used - memory.data());
  }
  MemoryRef Ref(const std::byte* at, uint64_t size) const noexcept {
    return {MemorySpaceKind::kPinned, id, static_cast<uint64_t>(at - data.get()), size};
  }
};

// Page-locked memory with a cache, like the CUDA backend's: a release never frees.
class PinnedMemory {
 public:
  explicit PinnedMemory(uint64_t limit_bytes) noexcept : limit_bytes_(limit_bytes) {}
  ~PinnedMemory() { FreeCached(/*in_use=*/false); }
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  // A block of at least `bytes` (not 0), full of junk; `fresh` says whether the driver was asked.
  Expected<PinnedBlock*> Allocate(uint64_t bytes, Names& names, bool& fresh);
  // Puts the block into the cache. `quiet`: nothing reads it any more; then nobody else may.
  void Release(PinnedBlock& block, bool quiet);
  // `in_use`: copies may still read some of it; the host's memory itself is kept until a later
  // call.
  void FreeCached(bool in_use);

  // The block, cached ones included, that holds `address`; null when none does.
  PinnedBlock* Find(const std::byte* address) noexcept;

  uint64_t bytes() const noexcept { return bytes_; }
  uint64_t cached_bytes() const noexcept { return cached_bytes_; }

 private:
  // Both in the order of addresses.
  std::vector<const std::byte*> starts_;
  std::vector<std::unique_ptr<PinnedBlock>> blocks_;
  std::multimap<uint64_t, PinnedBlock*> cache_;       // by size
  std::vector<std::unique_ptr<PinnedBlock>> buried_;  // freed while copies might read them
  uint32_t next_id_ = 0;
  uint64_t bytes_ = 0;
  uint64_t cached_bytes_ = 0;
  uint64_t limit_bytes_;
};

}  // namespace h2d::fake_internal

#endif  // H2D_DEVICE_FAKE_INTERNAL_MEMORY_H_
