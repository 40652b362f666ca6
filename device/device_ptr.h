// Addresses in device memory.
#ifndef H2D_DEVICE_DEVICE_PTR_H_
#define H2D_DEVICE_DEVICE_PTR_H_

#include <compare>
#include <cstdint>

#include "h2d/device/element.h"

namespace h2d {

// An address in device memory. Host code never dereferences it; arithmetic is in bytes.
class DevicePtr {
 public:
  constexpr DevicePtr() noexcept = default;  // the null address
  explicit constexpr DevicePtr(uint64_t address) noexcept : address_(address) {}
  explicit DevicePtr(const void* pointer) noexcept
      : address_(reinterpret_cast<std::uintptr_t>(pointer)) {}

  constexpr uint64_t address() const noexcept { return address_; }
  constexpr bool is_null() const noexcept { return address_ == 0; }
  void* pointer() const noexcept { return reinterpret_cast<void*>(address_); }  // for backends

  friend constexpr DevicePtr operator+(DevicePtr base, uint64_t bytes) noexcept {
    return DevicePtr(base.address_ + bytes);
  }
  friend constexpr auto operator<=>(DevicePtr, DevicePtr) noexcept = default;

 private:
  uint64_t address_ = 0;
};

// Where a copy goes: `count` elements of `element_bytes` bytes each, from `ptr` on. A view: the
// memory is the caller's, and stays valid until every copy into it has completed.
struct Destination {
  DevicePtr ptr;
  uint64_t count = 0;
  uint32_t element_bytes = 0;

  // A raw device address and a count make a destination: `Destination::Of<int32_t>(ptr, n)`.
  template <Element T>
  static constexpr Destination Of(DevicePtr ptr, uint64_t count) noexcept {
    return Destination{ptr, count, sizeof(T)};
  }
  // The same from the typed pointer that an engine holds: `Destination::Of(d_token_ids, n)`.
  template <Element T>
  static Destination Of(T* device_pointer, uint64_t count) noexcept {
    return Destination{DevicePtr(device_pointer), count, sizeof(T)};
  }

  friend constexpr bool operator==(const Destination&, const Destination&) noexcept = default;
};

}  // namespace h2d

#endif  // H2D_DEVICE_DEVICE_PTR_H_
