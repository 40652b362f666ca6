// The limits of a stager.
#ifndef H2D_STAGER_STAGER_OPTIONS_H_
#define H2D_STAGER_STAGER_OPTIONS_H_

#include <chrono>
#include <cstdint>

#include "h2d/device/error.h"

namespace h2d {

// What a copy does that found no room when the device could not give more pinned memory, although
// the limits would allow it (containers and WSL bound pinned memory by other means).
enum class OnGrowthFailure : uint8_t {
  kError,  // it fails with the device's error
  kWait,   // it waits for a slot, or answers "would block"; the failure is counted
};

struct StagerOptions {
  // The largest of these a stager accepts; they bound what one call may cost.
  static constexpr uint32_t kMaxSlots = 1024;
  static constexpr uint64_t kMaxSlotBytes = uint64_t{1} << 39;

  // The size of a usual copy, in bytes. Pinned memory is taken for it ahead of time; copies of any
  // other size share that memory, and a larger one makes the ring grow.
  uint64_t slot_bytes = uint64_t{64} << 10;

  // For how many usual copies pinned memory and events are made at construction.
  uint32_t initial_slots = 8;

  // How many slots may be in flight or held at once.
  uint32_t max_slots = 64;

  // How many bytes of pinned memory the stager may own at once. Memory is taken in slabs of at most
  // 1 MiB unless one value is larger, and used in blocks of 256 bytes, so a little of it can be
  // lost to rounding. A slab that made room for one of another size is in the device's cache,
  // counts against the device's own limit, and goes back to the driver with `Device::Trim`.
  uint64_t max_pinned_bytes = uint64_t{64} << 20;

  // How long `Copy` and `Acquire` wait for a slot before they fail with `kUnavailable`.
  std::chrono::nanoseconds wait_timeout = std::chrono::seconds(30);

  OnGrowthFailure on_growth_failure = OnGrowthFailure::kError;

  // A mirrored copy sends only the span that differs when that saves at least this many bytes. The
  // default sends it whenever it saves anything: less is staged and less travels. The largest value
  // turns trimming off.
  uint64_t min_trim_bytes = 1;
};

// Names the first field that is out of its range or at odds with another, and its value.
[[nodiscard]] Expected<void> Validate(const StagerOptions& options);

}  // namespace h2d

#endif  // H2D_STAGER_STAGER_OPTIONS_H_
