// A destination as its callers see it: its oracle, and the order that they owe it.
#ifndef H2D_TESTS_SUPPORT_BUFFER_H_
#define H2D_TESTS_SUPPORT_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "h2d/device/device.h"
#include "h2d/tests/support/region_model.h"
#include "h2d/tests/support/stream_table.h"

namespace h2d::testing {

// A caller's event, recorded on a stream after an access to a buffer.
struct AccessMark {
  std::shared_ptr<Event> event = {};
  const StreamSlot* stream = nullptr;
  uint64_t generation = 0;
  uint64_t returned = 0;  // when the access's call had returned, by the buffer's clock
};

// Bytes around a buffer's destination, which nothing may touch.
inline constexpr uint64_t kGuardBytes = 16;

// What the contract leaves to the callers, and nothing more: a write is ordered after earlier
// readers and after writes that the library did not make; a read after the last write's call.
class Buffer {
 public:
  Buffer(DevicePtr guarded, Bytes initial, uint64_t guard_bytes = kGuardBytes)
      : guarded_(guarded),
        guard_bytes_(guard_bytes),
        bytes_(initial.size()),
        model_(std::move(initial)) {}

  DevicePtr guarded() const noexcept { return guarded_; }
  uint64_t guarded_bytes() const noexcept { return bytes_; }
  DevicePtr data() const noexcept { return guarded_ + guard_bytes_; }
  RegionModel& model() noexcept { return model_; }

  // Makes the stream wait for what the caller of a write through a mirror must order it after.
  Expected<void> OrderMirroredWrite(Device& device, const StreamUse& use) const;
  // ... of a plain write, or of a kernel that writes.
  Expected<void> OrderPlainWrite(Device& device, const StreamUse& use) const;
  // ... of a kernel that reads.
  Expected<void> OrderRead(Device& device, const StreamUse& use) const;

  // The buffer's clock: calls draw from it when they begin.
  uint64_t Tick() noexcept { return ++clock_; }

  void AddReader(AccessMark mark) { readers_.push_back(std::move(mark)); }
  // A call through the mirror, begun at `begun`, returned a success. `moved_origin`: it enqueued
  // something, which the library orders all later calls after.
  void AddMirroredWrite(AccessMark mark, uint64_t begun, bool moved_origin);
  // A write that the library may or may not have enqueued.
  void AddPossibleWrite(AccessMark mark, bool mirrored);
  // A write that was ordered after everything. `foreign`: later calls through a mirror have to be
  // ordered after it by the callers.
  void AddPlainWrite(AccessMark mark, bool foreign);
  // The mirror is gone, and with it the order that it kept.
  void LoseMirror();

 private:
  static Expected<void> WaitFor(Device& device, const StreamUse& use,
                                const std::vector<AccessMark>& marks);

  DevicePtr guarded_;
  uint64_t guard_bytes_;
  uint64_t bytes_;
  RegionModel model_;
  uint64_t clock_ = 0;
  std::vector<AccessMark> readers_;  // since the last write that was ordered after them
  std::vector<AccessMark> writers_;  // the last write's call; several when they overlapped
  std::vector<AccessMark> foreign_;  // writes that the library does not order
};

}  // namespace h2d::testing

#endif  // H2D_TESTS_SUPPORT_BUFFER_H_
