// Where a file is loaded to: a device, memory on it, and a way to look at that memory.
#ifndef H2D_EXAMPLES_LOAD_FILE_TARGET_DEVICE_H_
#define H2D_EXAMPLES_LOAD_FILE_TARGET_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "h2d/device/device.h"

namespace h2d::load_file {

// Used by one thread. What it hands out lives as long as it does.
class TargetDevice {
 public:
  virtual ~TargetDevice() = default;
  TargetDevice(const TargetDevice&) = delete;
  TargetDevice& operator=(const TargetDevice&) = delete;

  // What reports call it.
  virtual std::string_view name() const = 0;
  virtual const std::shared_ptr<Device>& device() = 0;
  virtual const Stream& stream() = 0;

  // `bytes` (not 0) bytes of device memory.
  [[nodiscard]] virtual Expected<DevicePtr> Allocate(uint64_t bytes) = 0;
  // Waits for all work on `stream()`.
  [[nodiscard]] virtual Expected<void> Synchronize() = 0;
  // Fills `into` with device memory, after all work on `stream()`.
  [[nodiscard]] virtual Expected<void> ReadBack(DevicePtr from, std::span<std::byte> into) = 0;

  // How many races the device has seen; 0 on devices that cannot see any.
  virtual uint64_t hazards() const { return 0; }

 protected:
  TargetDevice() = default;
};

// The device called `name`: "fake" (simulated, on which time is virtual), "host" (plain memory) or
// "cuda" (the first GPU). Errors: no such name; no GPU, or a program built without CUDA.
Expected<std::unique_ptr<TargetDevice>> NewTargetDevice(std::string_view name);

// Behind it, apart because it needs a CUDA toolkit.
Expected<std::unique_ptr<TargetDevice>> NewCudaTarget();

}  // namespace h2d::load_file

#endif  // H2D_EXAMPLES_LOAD_FILE_TARGET_DEVICE_H_
