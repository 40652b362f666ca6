// What the replay needs of a machine beyond `Device`: memory, streams, and a graph that reads.
#ifndef H2D_EXAMPLES_REPLAY_MACHINE_H_
#define H2D_EXAMPLES_REPLAY_MACHINE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "h2d/device/device.h"

namespace h2d::replay {

// What a step's graph does to memory.
struct StepGraph {
  std::span<const Destination> reads;
  std::optional<Destination> clears;  // sets it to 0 when all was read
};

// A device, and the work around the library that an engine does through the device's own API. Used
// by one thread. What it hands out lives as long as it does.
class Machine {
 public:
  virtual ~Machine() = default;
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // What the report calls it.
  virtual std::string_view name() const = 0;

  virtual const std::shared_ptr<Device>& device() = 0;

  // Zeroed device memory at a multiple of `StepLayout::kMaxAlignment`; `name` is for messages.
  [[nodiscard]] virtual Expected<DevicePtr> AllocateDevice(uint64_t bytes,
                                                           std::string_view name) = 0;
  // Host memory that a graph's snapshot is written to.
  [[nodiscard]] virtual Expected<std::span<std::byte>> AllocateSnapshot(uint64_t bytes) = 0;
  [[nodiscard]] virtual Expected<Stream> NewStream(std::string_view name) = 0;

  // Enqueues a step's graph: it does what `graph` says in stream order and occupies the device for
  // `duration`. What it read, one destination after another, is in `snapshot` once an event that
  // was recorded on `stream` after this call is complete.
  [[nodiscard]] virtual Expected<void> LaunchGraph(const Stream& stream, const StepGraph& graph,
                                                   std::span<std::byte> snapshot,
                                                   std::chrono::nanoseconds duration) = 0;

  // Whether `Device::Now` tells what the device's calls are simulated to take, and no real time.
  virtual bool has_simulated_time() const { return false; }

  // How many races the machine has seen; 0 on machines that cannot see any.
  virtual uint64_t hazards() const { return 0; }
  // What led to the present state, for a person: the races, and a time line. Empty when the machine
  // keeps none.
  virtual std::string Explain() const { return {}; }

 protected:
  Machine() = default;
};

}  // namespace h2d::replay

#endif  // H2D_EXAMPLES_REPLAY_MACHINE_H_
