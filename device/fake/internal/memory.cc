#include "h2d/device/fake/internal/memory.h"

#include <cstring>
#include <iterator>
#include <optional>
#include <utility>

#include "h2d/device/checked_size.h"
#include "h2d/device/fake/internal/cuda_errors.h"

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
namespace {

constexpr int kJunk = 0xa5;

// Memory in the cache belongs to nobody: address sanitizer stops whoever touches it.
void Poison([[maybe_unused]] std::byte* data, [[maybe_unused]] uint64_t bytes) noexcept {
#ifdef H2D_FAKE_ASAN
  ASAN_POISON_MEMORY_REGION(data, bytes);
#endif
}
void Unpoison([[maybe_unused]] std::byte* data, [[maybe_unused]] uint64_t bytes) noexcept {
#ifdef H2D_FAKE_ASAN
  ASAN_UNPOISON_MEMORY_REGION(data, bytes);
#endif
}

std::string NameOr(std::string_view name, const char* kind, size_t id) {
  return name.empty() ? kind + std::to_string(id) : std::string(name);
}

}  // namespace

Expected<DeviceAllocation*> DeviceMemory::Allocate(uint64_t bytes, std::string_view name,
                                                   Names& names) {
  if (bytes == 0) return InvalidArgument("Device memory of 0 bytes cannot be allocated.");
  std::unique_ptr<std::byte[], CDelete> data;
  if (bytes <= limit_bytes_ - bytes_) data.reset(static_cast<std::byte*>(std::calloc(bytes, 1)));
  if (data == nullptr) {
    return MakeError(ErrorCode::kResourceExhausted,
                     "Device memory of " + std::to_string(bytes) +
                         " bytes does not fit: " + std::to_string(bytes_) + " of " +
                         std::to_string(limit_bytes_) + " bytes are in use.",
                     cuda_errors::kMemoryAllocation);
  }
  DeviceAllocation allocation;
  allocation.base = next_address_;
  allocation.bytes = bytes;
  allocation.id = static_cast<uint32_t>(names.device.size());
  allocation.data = std::move(data);
  names.device.push_back(NameOr(name, "device ", allocation.id));
  next_address_ += (bytes / kAlignment + 2) * kAlignment;
  bytes_ += bytes;
  const uint64_t base = allocation.base;
  return &allocations_.emplace(base, std::move(allocation)).first->second;
}

void DeviceMemory::Free(DeviceAllocation& allocation) {
  allocation.data.reset();
  allocation.shadow.Clear();
  bytes_ -= allocation.bytes;
}

DeviceAllocation* DeviceMemory::Find(uint64_t address) noexcept {
  if (last_found_ != nullptr && address - last_found_->base < last_found_->bytes)
    return last_found_;
  auto it = allocations_.upper_bound(address);
  if (it == allocations_.begin()) return nullptr;
  DeviceAllocation& allocation = std::prev(it)->second;
  if (address - allocation.base >= allocation.bytes) return nullptr;
  return last_found_ = &allocation;
}

Expected<PinnedBlock*> PinnedMemory::Allocate(uint64_t bytes, Names& names, bool& fresh) {
  const std::optional<uint64_t> size = RoundedUp(bytes, PinnedBuffer::kAlignment);
  fresh = false;
  if (size) {
    // A block of up to twice the size serves: a cache of exact sizes only would keep memory idle.
    const auto found = cache_.lower_bound(*size);
    if (found != cache_.end() && found->first / 2 <= *size) {
      PinnedBlock& block = *found->second;
      cache_.erase(found);
      cached_bytes_ -= block.bytes;
      block.cached = false;
      Unpoison(block.data.get(), block.bytes);
      std::memset(block.data.get(), kJunk, block.bytes);
      return &block;
    }
  }
  AlignedBytes data;
  if (size && *size <= limit_bytes_ - bytes_) {
    data.reset(static_cast<std::byte*>(
        ::operator new[](*size, std::align_val_t{PinnedBuffer::kAlignment}, std::nothrow)));
  }
  if (data == nullptr) {
    return MakeError(ErrorCode::kResourceExhausted,
                     "Pinned memory of " + std::to_string(bytes) +
                         " bytes does not fit: " + std::to_string(bytes_) + " of " +
                         std::to_string(limit_bytes_) + " bytes are held, " +
                         std::to_string(cached_bytes_) + " of them idle in the cache.",
                     cuda_errors::kMemoryAllocation);
  }
  fresh = true;
  PinnedBlock block;
  block.data = std::move(data);
  std::memset(block.data.get(), kJunk, *size);
  block.bytes = *size;
  block.id = next_id_++;
  names.pinned.push_back(NameOr({}, "pinned ", block.id));
  bytes_ += *size;
  const std::byte* first = block.data.get();
  return &blocks_.emplace(first, std::move(block)).first->second;
}

void PinnedMemory::Release(PinnedBlock& block, bool quiet) {
  block.cached = true;
  block.shadow.Clear();
  cached_bytes_ += block.bytes;
  cache_.emplace(block.bytes, &block);
  if (quiet) Poison(block.data.get(), block.bytes);
}

void PinnedMemory::FreeCached() {
  for (const auto& [size, block] : cache_) {
    Unpoison(block->data.get(), size);
    bytes_ -= size;
    blocks_.erase(block->data.get());
  }
  cache_.clear();
  cached_bytes_ = 0;
  last_found_ = nullptr;
}

PinnedBlock* PinnedMemory::Find(const std::byte* address) noexcept {
  if (last_found_ != nullptr && address >= last_found_->data.get() &&
      address < last_found_->data.get() + last_found_->bytes) {
    return last_found_;
  }
  auto it = blocks_.upper_bound(address);
  if (it == blocks_.begin()) return nullptr;
  PinnedBlock& block = std::prev(it)->second;
  if (address >= block.data.get() + block.bytes) return nullptr;
  return last_found_ = &block;
}

}  // namespace h2d::fake_internal
