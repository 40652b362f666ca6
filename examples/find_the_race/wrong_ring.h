// A ring of pinned slots as it is often written by hand, in thirty lines with one mistake.
#ifndef H2D_EXAMPLES_FIND_THE_RACE_WRONG_RING_H_
#define H2D_EXAMPLES_FIND_THE_RACE_WRONG_RING_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "h2d/device/device.h"

class WrongRing {
 public:
  static constexpr uint64_t kSlotBytes = 64;

  static h2d::Expected<WrongRing> Create(std::shared_ptr<h2d::Device> device, size_t slots);

  // Copies `values`, at most a slot of them, to `to` on `stream`; returns before they are there.
  h2d::Expected<void> Send(std::span<const std::byte> values, h2d::DevicePtr to,
                           const h2d::Stream& stream);

 private:
  struct Slot {
    h2d::PinnedBuffer memory;
    h2d::Event sent;
  };
  explicit WrongRing(std::shared_ptr<h2d::Device> device) : device_(std::move(device)) {}

  std::shared_ptr<h2d::Device> device_;
  std::vector<Slot> slots_;
  size_t next_ = 0;  // counts copies; this one uses slot `next_ % slots_.size()`
  size_t done_ = 0;  // copies before this one are complete
};

#endif  // H2D_EXAMPLES_FIND_THE_RACE_WRONG_RING_H_
