// Page-locked host memory that a device reads directly.
#ifndef H2D_DEVICE_PINNED_BUFFER_H_
#define H2D_DEVICE_PINNED_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "h2d/device/handle_owner.h"

namespace h2d {

// Owns page-locked memory of one device; made by `Device::AllocatePinned`. Move-only. When it dies
// its memory goes back to the device's cache and not to the driver, whose free waits for the whole
// device (18.6 ms behind 20 ms of work on an H200); only `Device::Trim` and the device's own end
// free. It may outlive its device.
//
// REQUIRES: no copy that reads the memory is in flight when it dies.
class PinnedBuffer {
 public:
  // For backends: takes ownership of `bytes` bytes (not 0) at `data`.
  static PinnedBuffer ForBackend(std::shared_ptr<HandleOwner> owner, std::byte* data,
                                 uint64_t bytes) noexcept {
    return PinnedBuffer(std::move(owner), data, bytes);
  }

  PinnedBuffer(PinnedBuffer&& other) noexcept
      : owner_(std::move(other.owner_)),
        data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  PinnedBuffer& operator=(PinnedBuffer&& other) noexcept {
    if (this != &other) {
      Release();
      owner_ = std::move(other.owner_);
      data_ = std::exchange(other.data_, nullptr);
      bytes_ = std::exchange(other.bytes_, 0);
    }
    return *this;
  }
  ~PinnedBuffer() { Release(); }

  // The memory; empty after a move. It starts at a multiple of `kAlignment`.
  static constexpr uint64_t kAlignment = 256;  // what device allocations promise, too
  std::span<std::byte> bytes() const noexcept { return {data_, bytes_}; }

  // Gives the memory up for good: it is never released, to the cache or to the driver. For memory
  // that a copy may still read and whose completion can no longer be learnt (I1, I9).
  void Leak() noexcept {
    owner_.reset();
    data_ = nullptr;
    bytes_ = 0;
  }

 private:
  PinnedBuffer(std::shared_ptr<HandleOwner> owner, std::byte* data, uint64_t bytes) noexcept
      : owner_(std::move(owner)), data_(data), bytes_(bytes) {}

  void Release() noexcept {
    if (data_ != nullptr && owner_->in_own_process()) owner_->ReleasePinned(data_, bytes_);
  }

  std::shared_ptr<HandleOwner> owner_;
  std::byte* data_;
  uint64_t bytes_;
};

}  // namespace h2d

#endif  // H2D_DEVICE_PINNED_BUFFER_H_
