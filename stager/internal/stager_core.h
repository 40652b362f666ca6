// What a stager, its mirrors and its leases share: the device, the ring, and how a copy is made.
#ifndef H2D_STAGER_INTERNAL_STAGER_CORE_H_
#define H2D_STAGER_INTERNAL_STAGER_CORE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "h2d/device/device.h"
#include "h2d/device/process.h"
#include "h2d/device/sync.h"
#include "h2d/stager/copy_outcome.h"
#include "h2d/stager/image.h"
#include "h2d/stager/internal/batch_item.h"
#include "h2d/stager/internal/image_bytes.h"
#include "h2d/stager/internal/mirror_registry.h"
#include "h2d/stager/internal/mirror_state.h"
#include "h2d/stager/internal/slot_ring.h"
#include "h2d/stager/internal/wait_for_slot.h"
#include "h2d/stager/stager_options.h"
#include "h2d/stager/stager_stats.h"

namespace h2d::internal {

class StepState;

// Thread-safe. Lives until the last of stager, mirrors and leases is gone; `Close` ends its work
// when the stager is.
class StagerCore {
 public:
  StagerCore(std::shared_ptr<Device> device, const StagerOptions& options);

  Expected<void> Prepare() { return ring_.Prepare(); }
  void Close() noexcept;

  Expected<CopyOutcome> CopyPlain(const Destination& destination, const HostImage& image,
                                  const Stream& stream, WaitForSlot wait);
  Expected<CopyOutcome> CopyMirrored(MirrorState& mirror, const HostImage& image,
                                     const Stream& stream, WaitForSlot wait);
  Expected<void> RecordMirror(MirrorState& mirror, const HostImage& image, const Stream& stream);
  Expected<bool> Matches(MirrorState& mirror, const HostImage& image) const;
  void Invalidate(MirrorState& mirror) noexcept;
  Expected<void> Rebind(MirrorState& mirror, const Destination& destination) const;

  // A slot for its holder to write; nothing when `wait` is `kNo` and none is free.
  Expected<std::optional<SlotRef>> Acquire(uint64_t bytes, WaitForSlot wait);
  void DropLease(const SlotRef& slot) noexcept;

  // Ends a lease. `*consumed` says afterwards whether the slot is gone; when a call is refused
  // before anything was enqueued, it is not.
  Expected<CopyOutcome> SubmitPlain(const SlotRef& slot, const Destination& destination,
                                    const Stream& stream, bool* consumed);
  Expected<CopyOutcome> SubmitMirrored(const SlotRef& slot, MirrorState& mirror,
                                       const Stream& stream, bool* consumed);

  // Counts a call that failed. The first form is for steps' paths: it moves nothing.
  template <class T>
  void CountFailure(const Expected<T>& result) noexcept {
    if (!result) [[unlikely]]
      errors_.AddRelaxed(1);
  }
  template <class T>
  Expected<T> Counted(Expected<T> result) noexcept {
    CountFailure(result);
    return result;
  }

  Expected<CopyOutcome> SubmitStep(StepState& step, const Stream& stream, WaitForSlot wait);

  // Makes all copies of a batch, at most `kMaxBatchEntries`, or none.
  Expected<CopyOutcome> CopyBatch(std::span<BatchItem> items, const Stream& stream,
                                  WaitForSlot wait);

  StagerStats Stats() const noexcept;
  const StagerOptions& options() const noexcept { return options_; }
  const std::shared_ptr<MirrorRegistry>& registry() const noexcept { return registry_; }
  bool in_own_process() const noexcept { return process_ == CurrentProcess(); }
  bool alive() const noexcept { return in_own_process() && closed_.Load() == 0; }

  // Errors: the stager is gone, or this is a forked child.
  Expected<void> CheckAlive() const;

 private:
  // A slot ready to be enqueued: `bytes` of it go to `to`.
  struct Filled {
    SlotRef slot;
    std::span<const std::byte> bytes;
    DevicePtr to;
  };

  Unexpected NotAlive() const;

  // What makes a stream unfit to be copied on, from what `Inspect` answered.
  static bool Refuses(const Expected<StreamStatus>& status) noexcept {
    return !status || status->capturing;
  }
  static Unexpected StreamError(Expected<StreamStatus> status);

  // Takes a slot for a copy on `stream`; answers false when none is free. Never waits. The second
  // form is for a caller that found none known to be free.
  Expected<bool> TryTake(uint64_t bytes, const Stream& stream, StreamId id, SlotRef* slot);
  Expected<bool> LookAndTake(uint64_t bytes, const Stream& stream, StreamId id, SlotRef* slot);
  Expected<bool> TakeInto(HeldSlot& held, uint64_t bytes, const Stream& stream, StreamId id);
  bool FitsLimit(uint64_t bytes) const noexcept { return bytes <= largest_slot_bytes_; }
  Unexpected DoesNotFitLimit(uint64_t bytes) const;
  [[gnu::always_inline]] inline Filled FillSlot(const SlotRef& slot, const ImageBytes& image,
                                                ByteSpan span, DevicePtr base);

  // Enqueues a filled slot and puts it in flight, whatever the copy call answered: a failed one may
  // run all the same. `*copy` names it afterwards, unless null.
  [[gnu::always_inline]] inline Expected<void> Enqueue(const Filled& filled, const Stream& stream,
                                                       StreamId id, uint64_t bytes_asked,
                                                       CopyRef* copy);

  // Inline, as others here that have one caller on steps' paths: a layer costs a copy through one
  // some thirty instructions, most of them for the `Expected` that it passes on.
  [[gnu::always_inline]] inline Expected<CopyOutcome> TryCopyPlain(const Destination& destination,
                                                                   const HostImage& image,
                                                                   const Stream& stream,
                                                                   WaitForSlot wait);
  Expected<std::optional<SlotRef>> LookOrWait(uint64_t bytes, const Stream& stream, StreamId id,
                                              WaitForSlot wait);
  [[gnu::always_inline]] inline Expected<CopyOutcome> SendPlain(const Filled& filled,
                                                                const Stream& stream, StreamId id);

  [[gnu::always_inline]] inline Expected<CopyOutcome> LockAndTry(MirrorState& mirror,
                                                                 const HostImage& image,
                                                                 const Stream& stream,
                                                                 HeldSlot& held, uint64_t* wanted);
  Expected<CopyOutcome> WaitAndCopyMirrored(MirrorState& mirror, const HostImage& image,
                                            const Stream& stream, uint64_t wanted);
  [[gnu::always_inline]] inline Expected<CopyOutcome> TryMirrored(MirrorState& mirror,
                                                                  const HostImage& image,
                                                                  const Stream& stream,
                                                                  HeldSlot& held, uint64_t* wanted)
      H2D_REQUIRES(mirror.mutex());
  [[gnu::always_inline]] inline Expected<CopyOutcome> Skip(MirrorState& mirror, uint64_t bytes,
                                                           const Stream& stream, StreamId id)
      H2D_REQUIRES(mirror.mutex());
  void CountSkipped(uint64_t bytes) noexcept {
    skipped_.AddRelaxed(1);
    skipped_bytes_.AddRelaxed(bytes);
  }
  Expected<CopyOutcome> SendMirrored(MirrorState& mirror, const ImageBytes& image, ByteSpan span,
                                     const Filled& filled, const Stream& stream, StreamId id)
      H2D_REQUIRES(mirror.mutex());
  Expected<bool> TryRecord(MirrorState& mirror, const HostImage& image, const Stream& stream,
                           HeldSlot& held, std::optional<uint64_t>& changes)
      H2D_REQUIRES(mirror.mutex());

  Expected<std::optional<SlotRef>> TryAcquire(uint64_t bytes, WaitForSlot wait);
  Expected<CopyOutcome> TrySubmitPlain(const SlotRef& slot, const Destination& destination,
                                       const Stream& stream, bool* consumed);
  Expected<CopyOutcome> TrySubmitMirrored(const SlotRef& slot, MirrorState& mirror,
                                          const Stream& stream, bool* consumed);

  [[gnu::always_inline]] inline Expected<CopyOutcome> TrySubmitStep(StepState& step,
                                                                    const Stream& stream,
                                                                    WaitForSlot wait);
  [[gnu::always_inline]] inline Expected<CopyOutcome> TryStep(StepState& step, const Stream& stream,
                                                              HeldSlot& held, uint64_t* wanted);
  [[gnu::always_inline]] inline Expected<CopyOutcome> SkipStep(StepState& step,
                                                               const Stream& stream, StreamId id);
  Expected<CopyOutcome> SendStep(StepState& step, std::span<const ByteSpan> spans,
                                 const SlotRef& slot, const SentBytes& bytes, const Stream& stream,
                                 StreamId id);
  Expected<void> EnqueueEntries(std::span<const CopyEntry> entries, const Stream& stream);

  // The mirrors of `items` are locked during all of these: a set that no annotation can name.
  Expected<CopyOutcome> TryCopyBatch(std::span<BatchItem> items, const Stream& stream,
                                     WaitForSlot wait);
  Expected<uint64_t> PlanBatch(std::span<BatchItem> items) H2D_ANNOTATE(no_thread_safety_analysis);
  Expected<void> FollowAll(std::span<const BatchItem> items, const Stream& stream, StreamId id)
      H2D_ANNOTATE(no_thread_safety_analysis);
  Expected<CopyOutcome> TryBatch(std::span<BatchItem> items, const Stream& stream, HeldSlot& held,
                                 uint64_t* wanted) H2D_ANNOTATE(no_thread_safety_analysis);
  Expected<CopyOutcome> SendBatch(std::span<const BatchItem> items, const SlotRef& slot,
                                  uint64_t asked, const Stream& stream, StreamId id)
      H2D_ANNOTATE(no_thread_safety_analysis);
  void ForgetPlain(std::span<const BatchItem> items) noexcept;

  Expected<void> EnqueueSpans(std::span<const ByteSpan> spans, DevicePtr slab,
                              std::span<const std::byte> slot, const Stream& stream);

  CopyOutcome WouldBlock() noexcept;

  const std::shared_ptr<Device> device_;
  const StagerOptions options_;
  const uint64_t largest_slot_bytes_;  // that the limits allow
  const ProcessEpoch process_ = CurrentProcess();
  const std::shared_ptr<MirrorRegistry> registry_;
  Atomic<uint32_t> closed_{0};
  SlotRing ring_;

  // Calls that took no slot, which the ring cannot count.
  Atomic<uint64_t> skipped_{0};
  Atomic<uint64_t> skipped_bytes_{0};
  Atomic<uint64_t> would_block_{0};
  Atomic<uint64_t> errors_{0};
  Atomic<uint64_t> failed_once_enqueued_{0};  // counted as issued, and among the errors
};

}  // namespace h2d::internal

#endif  // H2D_STAGER_INTERNAL_STAGER_CORE_H_
