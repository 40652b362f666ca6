// Where owning handles go when they die: the part of a backend that outlives its `Device`.
#ifndef H2D_DEVICE_HANDLE_OWNER_H_
#define H2D_DEVICE_HANDLE_OWNER_H_

#include <cstddef>
#include <cstdint>

#include "h2d/device/process.h"

namespace h2d {

// A backend keeps the state behind its handles in one shared object that implements this interface.
// Each `Event` and `PinnedBuffer` shares it, so a handle that outlives its `Device` is harmless.
//
// Thread-safe. Neither method fails, blocks on the device, or calls the driver's free.
class HandleOwner {
 public:
  virtual ~HandleOwner() = default;

  // Gives back the event named `raw`. A pending event may be destroyed: streams that wait for it
  // stay held until it completes, but it keeps no memory alive.
  virtual void DestroyEvent(uint64_t raw) noexcept = 0;

  // Puts `bytes` bytes of pinned memory at `data` into the device's cache.
  // REQUIRES: no copy that reads them is in flight.
  virtual void ReleasePinned(std::byte* data, uint64_t bytes) noexcept = 0;

  // False in a child forked after this object was made: its handles must not touch the driver.
  bool in_own_process() const noexcept { return process_ == CurrentProcess(); }

 private:
  const ProcessEpoch process_ = CurrentProcess();
};

}  // namespace h2d

#endif  // H2D_DEVICE_HANDLE_OWNER_H_
