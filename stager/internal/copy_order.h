// Whom the next copy to a destination must follow.
#ifndef H2D_STAGER_INTERNAL_COPY_ORDER_H_
#define H2D_STAGER_INTERNAL_COPY_ORDER_H_

#include <array>
#include <cstdint>

#include "h2d/device/error.h"
#include "h2d/device/stream.h"
#include "h2d/stager/internal/slot_ring.h"

namespace h2d::internal {

// The last copy enqueued to one destination, or possibly enqueued, and the streams that were made
// to wait for it. Each copy follows the one before, so the last stands for all (I4). Not
// thread-safe: its destination's owner or mutex guards it.
class CopyOrder {
 public:
  // Makes `stream`, whose identity is `id`, wait for the last copy unless it is ordered after it
  // already. Answers whether the two are on different streams. Errors: as
  // `SlotRing::MakeStreamWait`.
  Expected<bool> Follow(SlotRing& ring, const Stream& stream, StreamId id) {
    if (last_.generation == 0 || last_.stream == id) [[likely]]
      return false;
    return FollowAcross(ring, stream, id);
  }

  // `copy` is the last one from now on. REQUIRES: `Follow` succeeded for its stream before it was
  // enqueued.
  void Commit(const CopyRef& copy) noexcept;

  // Whether the last copy may still run, as far as is known without asking the device.
  bool MayRun(const SlotRing& ring) const noexcept;

 private:
  Expected<bool> FollowAcross(SlotRing& ring, const Stream& stream, StreamId id);

  CopyRef last_;
  std::array<StreamId, 4> waited_{};  // 0: none
  uint32_t next_waited_ = 0;
};

}  // namespace h2d::internal

#endif  // H2D_STAGER_INTERNAL_COPY_ORDER_H_
