// Brings small host values to the device in one asynchronous copy each, from a ring of pinned
// slots that is never rewritten while a copy reads it.
//
//   auto stager = h2d::PinnedStager::Create(device, {.slot_bytes = 4096});
//   auto mirror = (*stager)->NewMirror(h2d::Destination::Of<int32_t>(d_token_ids, 256));
//   auto outcome = (*stager)->Copy(*mirror, token_ids, stream, /*pad=*/-1);
//
// The values are read during the call: the caller's memory may change as soon as it returns.
// Padding is written on the host; no work runs on the multiprocessors (I2).
//
// What is not ordered. A copy is ordered after what its stream holds, and (through a mirror) after
// the mirror's last copy. It is not ordered after earlier *readers* of the destination on other
// streams: an engine that launches a graph on stream G and copies the next step's values on stream
// P makes P wait for the graph first. `FakeDevice` reports it when that is missing.
#ifndef H2D_STAGER_PINNED_STAGER_H_
#define H2D_STAGER_PINNED_STAGER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "h2d/device/device.h"
#include "h2d/stager/batch_copy.h"
#include "h2d/stager/copy_outcome.h"
#include "h2d/stager/h2d_mirror.h"
#include "h2d/stager/image.h"
#include "h2d/stager/internal/wait_for_slot.h"
#include "h2d/stager/slot_lease.h"
#include "h2d/stager/stager_options.h"
#include "h2d/stager/stager_stats.h"
#include "h2d/stager/step_layout.h"
#include "h2d/stager/step_writer.h"

namespace h2d {

// Thread-safety: any number of threads may share a stager. Threads stage side by side: filling a
// slot and enqueueing its copy happen outside the ring's lock.
//
// Blocking. `Copy`, `Acquire` and `H2DMirror::Record` wait for a slot when the limits are reached:
// outside every lock, at most `wait_timeout`, for whichever slot of any stream is free first. The
// `Try` forms never wait. In steady state nothing allocates, frees or synchronises (I6).
//
// Lifetime. A stager holds its device alive. Its destructor waits for its own copies and for
// nothing else, then hands the pinned memory back to the device's cache; after an error of the
// device it waits for nothing and leaks the memory that a copy might still read (I9). Mirrors and
// leases may outlive the stager and then answer `kFailedPrecondition`.
class PinnedStager {
 public:
  // Allocates pinned memory and events for `initial_slots` slots.
  // Errors: `kInvalidArgument` for a null device and for options out of range (the message names
  // the field and its value); the device's, and then nothing is left allocated.
  [[nodiscard]] static Expected<std::unique_ptr<PinnedStager>> Create(
      std::shared_ptr<Device> device, const StagerOptions& options = {});

  PinnedStager(const PinnedStager&) = delete;
  PinnedStager& operator=(const PinnedStager&) = delete;
  ~PinnedStager();

  // A mirror of `destination`, whose content is unknown: the first copy travels in full.
  // Allocates host memory of the destination's size.
  // Errors: a null, empty or overflowing destination, or one that overlaps another live mirror of
  // any stager on the same device memory (`kInvalidArgument`).
  [[nodiscard]] Expected<H2DMirror> NewMirror(const Destination& destination);

  // A writer of the slab at `slab`: device memory of `layout.slab_bytes()` bytes, aligned to
  // `StepLayout::kMaxAlignment`, of unknown content. Errors: as `NewMirror`.
  [[nodiscard]] Expected<StepWriter> NewStepWriter(const StepLayout& layout, DevicePtr slab,
                                                   const StepWriterOptions& options = {});

  // Copies `values` to the start of `destination` on `stream`; with `pad`, fills the rest of the
  // destination with it, without, leaves the rest as it is (I3). No values and no padding: nothing
  // happens, no device call is made, and the outcome is `kSkipped`.
  //
  // Errors, all of which leave the stager usable:
  //   kInvalidArgument     more values than the destination holds; elements of another size than
  //                        the destination's; a size that overflows; a null destination; a stream
  //                        of another device; another stager's mirror
  //   kFailedPrecondition  the stream is being captured (hits included, and nothing is recorded
  //                        into the graph); a forked child; a moved-from mirror
  //   kResourceExhausted   the bytes do not fit `max_pinned_bytes`; no slot can ever become free
  //   kUnavailable         no slot became free within `wait_timeout`; the mirror's last copy is on
  //                        another stream and its order cannot be learnt (see I5) until that
  //                        stream is used again
  //   kDevice              the device failed. The copy may have been enqueued: the mirror, or every
  //                        mirror that overlaps `destination`, has forgotten its content
  template <HostRange R>
  [[nodiscard]] Expected<CopyOutcome> Copy(const Destination& destination, const R& values,
                                           const Stream& stream,
                                           std::optional<ElementOf<R>> pad = std::nullopt) {
    return CopyImage(destination, internal::HostImage::Of(values, pad), stream,
                     internal::WaitForSlot::kYes);
  }
  template <HostRange R>
  [[nodiscard]] Expected<CopyOutcome> Copy(H2DMirror& mirror, const R& values, const Stream& stream,
                                           std::optional<ElementOf<R>> pad = std::nullopt) {
    return CopyImage(mirror, internal::HostImage::Of(values, pad), stream,
                     internal::WaitForSlot::kYes);
  }

  // The same without waiting: when no slot is free and the ring may not grow, the outcome is
  // `kWouldBlock`, nothing happened and nothing was allocated.
  template <HostRange R>
  [[nodiscard]] Expected<CopyOutcome> TryCopy(const Destination& destination, const R& values,
                                              const Stream& stream,
                                              std::optional<ElementOf<R>> pad = std::nullopt) {
    return CopyImage(destination, internal::HostImage::Of(values, pad), stream,
                     internal::WaitForSlot::kNo);
  }
  template <HostRange R>
  [[nodiscard]] Expected<CopyOutcome> TryCopy(H2DMirror& mirror, const R& values,
                                              const Stream& stream,
                                              std::optional<ElementOf<R>> pad = std::nullopt) {
    return CopyImage(mirror, internal::HostImage::Of(values, pad), stream,
                     internal::WaitForSlot::kNo);
  }

  // At most so many copies make a batch.
  static constexpr size_t kMaxBatchCopies = 64;

  // Makes several copies to destinations of their own in one call: one slot, one event, and one
  // batch call of the device; copies that bring nothing, and hits, take no part in it. On the
  // legacy default stream, which takes no batches, a copy call each. Use it for tensors that cannot
  // lie in one slab; where they can, a `StepWriter` costs a third (docs/performance.md).
  //
  // Each copy does what `Copy` says, with its mirror or without; the copies of a batch are
  // unordered among themselves. The outcome is of them together: `kSkipped` when none had to
  // travel, `kTrimmed` when less travelled than was asked. Counts as one copy in the statistics.
  //
  // All or nothing: when the batch is refused nothing was enqueued, and after an error of the
  // device no mirror of it believes in any of its values. Errors: as `Copy`; also more than
  // `kMaxBatchCopies` copies, a mirror that is named twice, and copies that write the same bytes
  // (`kInvalidArgument`).
  [[nodiscard]] Expected<CopyOutcome> CopyBatch(std::span<const BatchCopy> copies,
                                                const Stream& stream) {
    return CopyBatchImages(copies, stream, internal::WaitForSlot::kYes);
  }
  [[nodiscard]] Expected<CopyOutcome> TryCopyBatch(std::span<const BatchCopy> copies,
                                                   const Stream& stream) {
    return CopyBatchImages(copies, stream, internal::WaitForSlot::kNo);
  }

  // A slot of `bytes` bytes to write in place. It counts as in use until it was submitted and its
  // copy completed, or it was dropped.
  // Errors: `bytes` is 0 (`kInvalidArgument`); as `Copy` for the limits and the wait.
  [[nodiscard]] Expected<SlotLease> Acquire(uint64_t bytes);

  // The same without waiting: nothing when no slot is free and the ring may not grow.
  [[nodiscard]] Expected<std::optional<SlotLease>> TryAcquire(uint64_t bytes);

  // What happened so far. Never waits for the device.
  StagerStats stats() const noexcept;

  const StagerOptions& options() const noexcept;

 private:
  explicit PinnedStager(std::shared_ptr<internal::StagerCore> core) noexcept;
  Expected<CopyOutcome> CopyImage(const Destination& destination, const internal::HostImage& image,
                                  const Stream& stream, internal::WaitForSlot wait);
  Expected<CopyOutcome> CopyImage(H2DMirror& mirror, const internal::HostImage& image,
                                  const Stream& stream, internal::WaitForSlot wait);
  Expected<CopyOutcome> NotOwn(const H2DMirror& mirror);

  Expected<CopyOutcome> CopyBatchImages(std::span<const BatchCopy> copies, const Stream& stream,
                                        internal::WaitForSlot wait);

  std::shared_ptr<internal::StagerCore> core_;
};

}  // namespace h2d

#endif  // H2D_STAGER_PINNED_STAGER_H_
