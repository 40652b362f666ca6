// What a mirror knows, and whom its next copy must wait for.
#ifndef H2D_STAGER_INTERNAL_MIRROR_STATE_H_
#define H2D_STAGER_INTERNAL_MIRROR_STATE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "h2d/device/device_ptr.h"
#include "h2d/device/error.h"
#include "h2d/device/sync.h"
#include "h2d/stager/internal/copy_order.h"
#include "h2d/stager/internal/host_bytes.h"
#include "h2d/stager/internal/image_bytes.h"
#include "h2d/stager/internal/mirror_registry.h"
#include "h2d/stager/internal/slot_ring.h"

namespace h2d::internal {

class StagerCore;

// The state behind an `H2DMirror`. Its mutex is taken before the ring's, and held from comparing to
// committing; never while waiting for a slot (I8).
class MirrorState {
 public:
  static Expected<std::shared_ptr<MirrorState>> Create(std::shared_ptr<StagerCore> core,
                                                       const Destination& destination,
                                                       uint64_t bytes);
  ~MirrorState();
  MirrorState(const MirrorState&) = delete;
  MirrorState& operator=(const MirrorState&) = delete;

  StagerCore& core() const noexcept { return *core_; }
  Mutex& mutex() noexcept H2D_ANNOTATE(lock_returned(mutex_)) { return mutex_; }

  // Tells in which order the mutexes of several mirrors are taken; no two have the same.
  uint64_t rank() const noexcept { return rank_; }

  const Destination& destination() const H2D_REQUIRES(mutex_) { return destination_; }

  // The span of `image` that must travel so that the destination holds it: empty when it does.
  // Inline is the usual hit.
  ByteSpan ToSend(const ImageBytes& image, uint64_t min_trim_bytes) H2D_REQUIRES(mutex_) {
    ForgetIfOverwritten();
    if (image.pad_bytes == 0 && image.value_bytes <= known_bytes_ &&
        SameBytes(held_.get(), image.values, image.value_bytes)) {
      return {};
    }
    return Differing(image, min_trim_bytes);
  }

  // Whether the destination is known to hold `image`.
  bool Holds(const ImageBytes& image) H2D_REQUIRES(mutex_);

  CopyOrder& order() H2D_REQUIRES(mutex_) { return order_; }

  // Remembers that `span` of `image` is about to be enqueued and, afterwards, what became of it: a
  // copy whose enqueueing failed may have been made in part, so that nothing is known any more.
  void Remember(const ImageBytes& image, ByteSpan span) H2D_REQUIRES(mutex_);
  void Commit(const CopyRef& copy, bool enqueued) H2D_REQUIRES(mutex_);

  // Counts up with every copy through the mirror and every plain copy into its range.
  uint64_t changes() const H2D_REQUIRES(mutex_) { return commits_ + forgets_.Load(); }

  // Forgets the content, and with it what plain copies have overwritten so far; the last copy stays
  // what it was.
  void Forget() H2D_REQUIRES(mutex_) {
    forgets_seen_ = forgets_.Load();
    known_bytes_ = 0;
  }
  void ForgetAndMark(SlotRing& ring) H2D_REQUIRES(mutex_);

  Expected<void> Rebind(const Destination& destination, uint64_t bytes) H2D_REQUIRES(mutex_);

 private:
  MirrorState(std::shared_ptr<StagerCore> core, const Destination& destination, HostBytes held);

  // A plain copy that overlaps this call in time may count as before or after it; one that returned
  // before this call began is seen here.
  void ForgetIfOverwritten() H2D_REQUIRES(mutex_) {
    if (forgets_.Load() != forgets_seen_) [[unlikely]]
      Forget();
  }
  ByteSpan Differing(const ImageBytes& image, uint64_t min_trim_bytes) H2D_REQUIRES(mutex_);

  const std::shared_ptr<StagerCore> core_;
  const std::shared_ptr<MirrorRegistry> registry_;
  const uint64_t rank_;
  ForgetCount forgets_{0};  // counted up by plain copies into the range

  Mutex mutex_;
  Destination destination_ H2D_GUARDED_BY(mutex_);
  bool registered_ H2D_GUARDED_BY(mutex_) = false;

  // What the destination holds once everything enqueued has run: known from its start on, because
  // every image begins there.
  HostBytes held_ H2D_GUARDED_BY(mutex_);
  uint64_t known_bytes_ H2D_GUARDED_BY(mutex_) = 0;
  uint64_t forgets_seen_ H2D_GUARDED_BY(mutex_) = 0;
  uint64_t commits_ H2D_GUARDED_BY(mutex_) = 0;

  CopyOrder order_ H2D_GUARDED_BY(mutex_);
};

}  // namespace h2d::internal

#endif  // H2D_STAGER_INTERNAL_MIRROR_STATE_H_
