// What a mirror is told and asked besides copying.
#include <optional>
#include <utility>

#include "h2d/stager/internal/checked_image.h"
#include "h2d/stager/internal/stager_core.h"
#include "h2d/stager/internal/state_mark.h"

namespace h2d::internal {

// Answers whether there was a slot for the record. `*changes` is what the mirror counted at the
// first try: what others did to it since, while this call waited, is not what the caller wrote.
Expected<bool> StagerCore::TryRecord(MirrorState& mirror, const HostImage& image,
                                     const Stream& stream, HeldSlot& held,
                                     std::optional<uint64_t>& changes) {
  if (!changes) changes = mirror.changes();
  // The caller's write has happened: what the mirror knew is past, however this call ends.
  mirror.Forget();
  auto bytes = CheckedImage(image, mirror.destination());
  if (!bytes) return ErrorOf(bytes);
  if (bytes->bytes() == 0) return true;
  auto status = device_->Inspect(stream);
  if (Refuses(status)) return StreamError(std::move(status));
  auto enough = TakeInto(held, 0, stream, status->id);
  if (!enough || !*enough) return enough;
  auto ordered = mirror.order().Follow(ring_, stream, status->id);
  if (!ordered) return ordered;
  CopyRef copy;
  Expected<void> recorded = ring_.Publish(held.Release(), stream, status->id, SentBytes{}, &copy);
  const bool undisturbed = mirror.changes() == *changes;
  mirror.Remember(*bytes, {0, bytes->bytes()});
  mirror.Commit(copy, recorded && undisturbed);
  if (!recorded) return ErrorOf(recorded);
  Reached(Mark::kMirrorRecorded);
  return true;
}

Expected<void> StagerCore::RecordMirror(MirrorState& mirror, const HostImage& image,
                                        const Stream& stream) {
  if (!alive()) return Counted<void>(NotAlive());
  HeldSlot held(ring_);
  std::optional<uint64_t> changes;
  for (;;) {
    {
      MutexLock lock(mirror.mutex());
      auto recorded = TryRecord(mirror, image, stream, held, changes);
      if (!recorded) return Counted<void>(ErrorOf(recorded));
      if (*recorded) return {};
    }
    auto waited = ring_.WaitAndTake(0);
    if (!waited) return Counted<void>(ErrorOf(waited));
    held.Hold(*waited);
  }
}

Expected<bool> StagerCore::Matches(MirrorState& mirror, const HostImage& image) const {
  if (!alive()) return NotAlive();
  MutexLock lock(mirror.mutex());
  auto bytes = CheckedImage(image, mirror.destination());
  if (!bytes) return ErrorOf(bytes);
  return mirror.Holds(*bytes);
}

void StagerCore::Invalidate(MirrorState& mirror) noexcept {
  if (!in_own_process()) return;
  MutexLock lock(mirror.mutex());
  mirror.ForgetAndMark(ring_);
}

Expected<void> StagerCore::Rebind(MirrorState& mirror, const Destination& destination) const {
  if (!alive()) return NotAlive();
  auto bytes = CheckedMirrorDestination(destination);
  if (!bytes) return ErrorOf(bytes);
  MutexLock lock(mirror.mutex());
  return mirror.Rebind(destination, *bytes);
}

}  // namespace h2d::internal
