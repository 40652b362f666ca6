#include "h2d/device/fake/internal/memory.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "h2d/device/checked_size.h"
#include "h2d/device/fake/internal/address_sanitizer.h"
#include "h2d/device/fake/internal/cuda_errors.h"

namespace h2d::fake_internal {
namespace {

constexpr int kJunk = 0xa5;

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
  auto made = std::make_unique<DeviceAllocation>();
  DeviceAllocation& allocation = *made;
  allocation.base = next_address_;
  allocation.bytes = bytes;
  allocation.id = static_cast<uint32_t>(names.device.size());
  allocation.data = std::move(data);
  names.device.push_back(NameOr(name, "device ", allocation.id));
  next_address_ += (bytes / kAlignment + 2) * kAlignment;
  bytes_ += bytes;
  bases_.push_back(allocation.base);
  allocations_.push_back(std::move(made));
  return &allocation;
}

void DeviceMemory::Free(DeviceAllocation& allocation, bool in_use) {
  if (in_use) {
    buried_.push_back(std::move(allocation.data));
  } else {
    buried_.clear();
  }
  allocation.data.reset();
  allocation.shadow.Clear();
  bytes_ -= allocation.bytes;
}

DeviceAllocation* DeviceMemory::Find(uint64_t address) noexcept {
  const auto after = std::upper_bound(bases_.begin(), bases_.end(), address);
  if (after == bases_.begin()) return nullptr;
  DeviceAllocation& allocation = *allocations_[static_cast<size_t>(after - bases_.begin()) - 1];
  return address - allocation.base < allocation.bytes ? &allocation : nullptr;
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
      block.used = bytes;
      UnpoisonBytes(block.data.get(), block.bytes);
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
  auto block = std::make_unique<PinnedBlock>();
  block->data = std::move(data);
  std::memset(block->data.get(), kJunk, *size);
  block->bytes = *size;
  block->used = bytes;
  block->id = next_id_++;
  names.pinned.push_back(NameOr({}, "pinned ", block->id));
  bytes_ += *size;
  const std::byte* first = block->data.get();
  const auto place = std::upper_bound(starts_.begin(), starts_.end(), first);
  const auto index = place - starts_.begin();
  starts_.insert(place, first);
  return blocks_.insert(blocks_.begin() + index, std::move(block))->get();
}

void PinnedMemory::Release(PinnedBlock& block, bool quiet) {
  block.cached = true;
  block.shadow.Clear();
  cached_bytes_ += block.bytes;
  cache_.emplace(block.bytes, &block);
  // Memory in the cache belongs to nobody: address sanitizer stops whoever touches it.
  if (quiet) PoisonBytes(block.data.get(), block.bytes);
}

void PinnedMemory::FreeCached(bool in_use) {
  if (!in_use) buried_.clear();
  size_t kept = 0;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    if (blocks_[i]->cached) {
      UnpoisonBytes(blocks_[i]->data.get(), blocks_[i]->bytes);
      bytes_ -= blocks_[i]->bytes;
      if (in_use) buried_.push_back(std::move(blocks_[i]));
      continue;
    }
    starts_[kept] = starts_[i];
    blocks_[kept++] = std::move(blocks_[i]);
  }
  starts_.resize(kept);
  blocks_.resize(kept);
  cache_.clear();
  cached_bytes_ = 0;
}

PinnedBlock* PinnedMemory::Find(const std::byte* address) noexcept {
  const auto after = std::upper_bound(starts_.begin(), starts_.end(), address);
  if (after == starts_.begin()) return nullptr;
  PinnedBlock& block = *blocks_[static_cast<size_t>(after - starts_.begin()) - 1];
  return address < block.data.get() + block.bytes ? &block : nullptr;
}

}  // namespace h2d::fake_internal
