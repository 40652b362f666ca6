#include "h2d/tests/support/buffer.h"

#include <utility>

namespace h2d::testing {

Expected<void> Buffer::WaitFor(Device& device, const StreamUse& use,
                               const std::vector<AccessMark>& marks) {
  for (const AccessMark& mark : marks) {
    // The order of one stream needs no event; a stream made anew is another one.
    if (mark.stream == &use.slot() && mark.generation == use.slot().generation) continue;
    if (auto waits = device.WaitEvent(use.stream(), *mark.event); !waits) return waits;
  }
  return {};
}

Expected<void> Buffer::OrderMirroredWrite(Device& device, const StreamUse& use) const {
  if (auto waits = WaitFor(device, use, readers_); !waits) return waits;
  return WaitFor(device, use, foreign_);
}

Expected<void> Buffer::OrderPlainWrite(Device& device, const StreamUse& use) const {
  if (auto waits = OrderMirroredWrite(device, use); !waits) return waits;
  return WaitFor(device, use, writers_);
}

Expected<void> Buffer::OrderRead(Device& device, const StreamUse& use) const {
  return WaitFor(device, use, writers_);
}

void Buffer::AddMirroredWrite(AccessMark mark, uint64_t begun, bool moved_origin) {
  std::erase_if(writers_, [&](const AccessMark& other) { return other.returned < begun; });
  mark.returned = Tick();
  writers_.push_back(std::move(mark));
  if (!moved_origin) return;
  // It waited for them, and every later call waits for it.
  readers_.clear();
  foreign_.clear();
}

void Buffer::AddPossibleWrite(AccessMark mark, bool mirrored) {
  mark.returned = Tick();
  if (!mirrored) foreign_.push_back(mark);
  writers_.push_back(std::move(mark));
}

void Buffer::AddPlainWrite(AccessMark mark, bool foreign) {
  mark.returned = Tick();
  readers_.clear();
  foreign_.clear();
  if (foreign) foreign_.push_back(mark);
  writers_.assign(1, std::move(mark));
}

void Buffer::LoseMirror() { foreign_.insert(foreign_.end(), writers_.begin(), writers_.end()); }

}  // namespace h2d::testing
