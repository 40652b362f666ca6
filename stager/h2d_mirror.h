// What one destination holds, as the host knows it.
#ifndef H2D_STAGER_H2D_MIRROR_H_
#define H2D_STAGER_H2D_MIRROR_H_

#include <memory>
#include <optional>
#include <ranges>

#include "h2d/device/device_ptr.h"
#include "h2d/device/element.h"
#include "h2d/device/error.h"
#include "h2d/device/stream.h"
#include "h2d/stager/image.h"

namespace h2d {

namespace internal {
class MirrorState;
class StagerCore;
}  // namespace internal

// A mirror is made by a stager for a destination and is the destination of the mirrored
// `PinnedStager::Copy`: a copy whose values the destination already holds is skipped, and of one
// that differs in part only the differing span travels. No reader can tell: a reader that is
// ordered after the call on its stream sees what a full copy would have left (I4).
//
// Order. Every copy through a mirror on another stream than the mirror's last copy first makes its
// stream wait for that copy. Calls on one mirror are totally ordered.
//
// What it cannot see. The mirror knows what went through the library. When anything else writes the
// destination (a kernel, a memset, another library), call `Invalidate` or `Record` before the next
// copy. A plain copy of the library into the mirrored bytes makes the mirror forget by itself. The
// live mirrors of a device are disjoint in their bytes.
//
// Thread-safety: any number of threads may use a mirror at once; moving and destroying need the
// caller's exclusion. Move-only; a moved-from mirror, one whose stager is gone, and one in a forked
// child answer `kFailedPrecondition`. Destroying a mirror never waits, and the order of copies
// still in flight is then the caller's: a new mirror of the same bytes knows nothing of them.
class H2DMirror {
 public:
  H2DMirror(H2DMirror&&) noexcept;
  H2DMirror& operator=(H2DMirror&&) noexcept;
  ~H2DMirror();

  // Whether the destination is known to hold `values` (then the padding, when given): a mirrored
  // copy of them would be skipped. Advice only: it orders nothing and makes no device call.
  // Errors: values that do not fit the destination, or of another element size.
  template <HostRange R>
  [[nodiscard]] Expected<bool> Matches(const R& values,
                                       std::optional<ElementOf<R>> pad = std::nullopt) const {
    return MatchesImage(internal::HostImage::Of(values, pad));
  }

  // Tells the mirror that the caller's own work on `stream`, enqueued before this call and ordered
  // after the mirror's last copy, left the destination holding `values` (then the padding). It
  // makes `stream` wait for the mirror's last copy, records an event there, and that event is the
  // mirror's last copy from now on. Takes a slot, without memory, until the event completes.
  // Errors: as `PinnedStager::Copy`; after an error the mirror has forgotten its content.
  template <HostRange R>
  [[nodiscard]] Expected<void> Record(const R& values, const Stream& stream,
                                      std::optional<ElementOf<R>> pad = std::nullopt) {
    return RecordImage(internal::HostImage::Of(values, pad), stream);
  }

  // Forgets the content, so that the next copy travels in full; never the order (I4). No device
  // call. Does nothing on a moved-from mirror.
  void Invalidate() noexcept;

  // Follows a destination that was reallocated: the content is forgotten, the order kept.
  // Errors: a null or overflowing destination, or one that overlaps another live mirror of the
  // device (`kInvalidArgument`); then nothing changes.
  [[nodiscard]] Expected<void> Rebind(const Destination& destination);

  // Where the mirrored copies go; all zero for a moved-from mirror and in a
  // forked child.
  Destination destination() const noexcept;

 private:
  friend class PinnedStager;
  friend class SlotLease;
  explicit H2DMirror(std::shared_ptr<internal::MirrorState> state) noexcept;

  // Not moved from and, unless `core` is null, made by the stager of `core`.
  Expected<void> CheckMadeBy(const internal::StagerCore* core) const;
  Expected<bool> MatchesImage(const internal::HostImage& image) const;
  Expected<void> RecordImage(const internal::HostImage& image, const Stream& stream);

  std::shared_ptr<internal::MirrorState> state_;
};

}  // namespace h2d

#endif  // H2D_STAGER_H2D_MIRROR_H_
