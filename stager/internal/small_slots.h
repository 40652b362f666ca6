// Pinned memory for sources that one copy brings.
#ifndef H2D_STAGER_INTERNAL_SMALL_SLOTS_H_
#define H2D_STAGER_INTERNAL_SMALL_SLOTS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "h2d/device/device.h"
#include "h2d/device/sync.h"
#include "h2d/stager/internal/release_core.h"

namespace h2d::internal {

// Slots of one size; few are made, and the one that came back last is taken first: the fewer, the
// warmer. A stream may use a part of them, so that one that stands still leaves the rest to the
// others. A slot comes back when an event recorded behind its copy was seen to be complete, and
// never before (I1); when the record failed, with the next one on its stream, or never (I9).
//
// Nothing here waits: without a slot, there are the chunks.
//
// Thread-safe.
class SmallSlots {
 public:
  SmallSlots(std::shared_ptr<Device> device, uint64_t slot_bytes, uint32_t max_slots);
  SmallSlots(const SmallSlots&) = delete;
  SmallSlots& operator=(const SmallSlots&) = delete;

  // A slot for a copy on `named`, whose identity is `stream` and which is not captured, if there is
  // one now.
  std::optional<PinnedBuffer> TryTake(StreamId stream, const Stream& named);
  // The slot's copy of `bytes` bytes was enqueued, or, unless `copied`, may have been. Errors: the
  // device's; no event could be recorded behind it.
  Expected<void> InFlight(PinnedBuffer slot, StreamId id, const Stream& stream, uint64_t bytes,
                          bool copied);

  struct Counts {
    uint64_t copies = 0;
    uint64_t bytes = 0;
    uint32_t in_use = 0;
    uint64_t pinned_bytes = 0;
  };
  Counts counts() const noexcept;

 private:
  bool HasShare(StreamId stream) const H2D_REQUIRES(mutex_);
  bool TakeShare(StreamId stream) H2D_REQUIRES(mutex_);
  void EndShare(StreamId stream) H2D_REQUIRES(mutex_);
  std::optional<PinnedBuffer> TakeFree(StreamId stream) H2D_EXCLUDES(mutex_);
  void GiveBack(PinnedBuffer slot, StreamId stream);

  const std::shared_ptr<Device> device_;
  const uint64_t slot_bytes_;
  const uint32_t max_slots_;
  mutable Mutex mutex_;
  std::vector<PinnedBuffer> free_ H2D_GUARDED_BY(mutex_);
  std::map<StreamId, uint32_t> in_use_ H2D_GUARDED_BY(mutex_);
  uint32_t made_ H2D_GUARDED_BY(mutex_) = 0;  // or being made
  Counts counts_ H2D_GUARDED_BY(mutex_);
  // Holds the slots in flight. It ends first: they come back to what is above.
  ReleaseCore tracker_;
};

}  // namespace h2d::internal

#endif  // H2D_STAGER_INTERNAL_SMALL_SLOTS_H_
