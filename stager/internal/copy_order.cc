#include "h2d/stager/internal/copy_order.h"

#include <algorithm>

#include "h2d/stager/internal/state_mark.h"

namespace h2d::internal {

Expected<bool> CopyOrder::FollowAcross(SlotRing& ring, const Stream& stream, StreamId id) {
  if (std::find(waited_.begin(), waited_.end(), id) != waited_.end()) {
    Reached(Mark::kStreamWaitedBefore);
    return true;
  }
  const Expected<bool> waited = ring.MakeStreamWait(stream, last_);
  if (!waited) return Unexpected(waited.error());
  if (*waited) {
    waited_[next_waited_] = id;
    next_waited_ = (next_waited_ + 1) % waited_.size();
  } else {
    last_ = CopyRef();
  }
  return true;
}

void CopyOrder::Commit(const CopyRef& copy) noexcept {
  last_ = copy;
  waited_.fill(0);
}

bool CopyOrder::MayRun(const SlotRing& ring) const noexcept {
  return last_.generation != 0 && !ring.KnownComplete(last_);
}

}  // namespace h2d::internal
