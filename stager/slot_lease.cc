#include "h2d/stager/slot_lease.h"

#include <utility>

#include "h2d/stager/h2d_mirror.h"
#include "h2d/stager/internal/stager_core.h"

namespace h2d {
namespace {

Unexpected EmptyLease() {
  return FailedPrecondition("The lease holds no slot: it was submitted or moved from.");
}

}  // namespace

SlotLease::SlotLease(std::shared_ptr<internal::StagerCore> core,
                     const internal::SlotRef& slot) noexcept
    : core_(std::move(core)), bytes_(slot.bytes), slot_(slot.index) {}

SlotLease::SlotLease(SlotLease&& other) noexcept
    : core_(std::move(other.core_)), bytes_(std::exchange(other.bytes_, {})), slot_(other.slot_) {}

SlotLease& SlotLease::operator=(SlotLease&& other) noexcept {
  if (this != &other) {
    Drop();
    core_ = std::move(other.core_);
    bytes_ = std::exchange(other.bytes_, {});
    slot_ = other.slot_;
  }
  return *this;
}

SlotLease::~SlotLease() { Drop(); }

void SlotLease::Drop() noexcept {
  if (!bytes_.empty()) core_->DropLease({slot_, bytes_});
  bytes_ = {};
}

Expected<CopyOutcome> SlotLease::Submit(const Destination& destination, const Stream& stream) {
  if (bytes_.empty()) return EmptyLease();
  bool consumed = false;
  auto outcome = core_->SubmitPlain({slot_, bytes_}, destination, stream, &consumed);
  if (consumed) bytes_ = {};
  return outcome;
}

Expected<CopyOutcome> SlotLease::Submit(H2DMirror& mirror, const Stream& stream) {
  if (bytes_.empty()) return EmptyLease();
  if (auto own = mirror.CheckMadeBy(core_.get()); !own) {
    return core_->Counted<CopyOutcome>(ErrorOf(own));
  }
  bool consumed = false;
  auto outcome = core_->SubmitMirrored({slot_, bytes_}, *mirror.state_, stream, &consumed);
  if (consumed) bytes_ = {};
  return outcome;
}

}  // namespace h2d
