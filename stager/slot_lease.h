// A pinned slot that the caller writes in place.
#ifndef H2D_STAGER_SLOT_LEASE_H_
#define H2D_STAGER_SLOT_LEASE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "h2d/device/device_ptr.h"
#include "h2d/device/element.h"
#include "h2d/device/error.h"
#include "h2d/device/stream.h"
#include "h2d/stager/copy_outcome.h"

namespace h2d {

class H2DMirror;

namespace internal {
class StagerCore;
struct SlotRef;
}  // namespace internal

// A slot between `PinnedStager::Acquire` and its end: the caller writes `bytes()` and submits, or
// drops the lease, which hands the slot back. It saves the copy into the slot that
// `PinnedStager::Copy` makes.
//
// Ownership: move-only; keeps the slot's memory, but not the stager, alive. It has one owner at a
// time. After a successful `Submit` the bytes belong to the device: the lease is empty, and spans
// taken from it must not be used any more.
class SlotLease {
 public:
  SlotLease(SlotLease&&) noexcept;
  SlotLease& operator=(SlotLease&&) noexcept;
  ~SlotLease();

  // The slot's bytes, as many as were asked for, of arbitrary content, aligned to 256 bytes; empty
  // once submitted.
  std::span<std::byte> bytes() const noexcept { return bytes_; }

  // The same as elements; as many as fit. T is aligned to at most 256 bytes.
  template <Element T>
  std::span<T> as() const noexcept {
    static_assert(alignof(T) <= 256);
    return {reinterpret_cast<T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }

  // Whether there is still a slot to write.
  explicit operator bool() const noexcept { return !bytes_.empty(); }

  // Copies the slot's bytes to the start of `destination` on `stream`; the rest of the destination
  // stays as it is. The outcome is `kIssued`.
  // Errors: as `PinnedStager::Copy`. When the call is refused before anything was enqueued (a bad
  // destination, a capturing stream), the lease stays as it was and may be submitted again;
  // once the copy was enqueued or may have been, it is empty, and the slot comes back when that is
  // safe.
  [[nodiscard]] Expected<CopyOutcome> Submit(const Destination& destination, const Stream& stream);

  // The same through a mirror: skipped, trimmed or issued. After a skip the lease is empty and the
  // slot is back.
  [[nodiscard]] Expected<CopyOutcome> Submit(H2DMirror& mirror, const Stream& stream);

 private:
  friend class PinnedStager;
  SlotLease(std::shared_ptr<internal::StagerCore> core, const internal::SlotRef& slot) noexcept;
  void Drop() noexcept;

  std::shared_ptr<internal::StagerCore> core_;
  std::span<std::byte> bytes_;
  uint32_t slot_ = 0;
};

}  // namespace h2d

#endif  // H2D_STAGER_SLOT_LEASE_H_
