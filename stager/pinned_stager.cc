#include "h2d/stager/pinned_stager.h"

#include <string>
#include <utility>

#include "h2d/stager/internal/batch_item.h"
#include "h2d/stager/internal/checked_image.h"
#include "h2d/stager/internal/inline_vector.h"
#include "h2d/stager/internal/stager_core.h"
#include "h2d/stager/internal/step_state.h"

namespace h2d {

Expected<std::unique_ptr<PinnedStager>> PinnedStager::Create(std::shared_ptr<Device> device,
                                                             const StagerOptions& options) {
  if (device == nullptr) return InvalidArgument("The stager's device is null.");
  Expected<void> valid = Validate(options);
  if (!valid) return ErrorOf(valid);
  auto core = std::make_shared<internal::StagerCore>(std::move(device), options);
  Expected<void> prepared = core->Prepare();
  if (!prepared) return ErrorOf(prepared);
  return std::unique_ptr<PinnedStager>(new PinnedStager(std::move(core)));
}

PinnedStager::PinnedStager(std::shared_ptr<internal::StagerCore> core) noexcept
    : core_(std::move(core)) {}

PinnedStager::~PinnedStager() { core_->Close(); }

Expected<H2DMirror> PinnedStager::NewMirror(const Destination& destination) {
  if (auto alive = core_->CheckAlive(); !alive) return ErrorOf(alive);
  auto bytes = internal::CheckedMirrorDestination(destination);
  if (!bytes) return ErrorOf(bytes);
  auto state = internal::MirrorState::Create(core_, destination, *bytes);
  if (!state) return ErrorOf(state);
  return H2DMirror(std::move(*state));
}

Expected<StepWriter> PinnedStager::NewStepWriter(const StepLayout& layout, DevicePtr slab,
                                                 const StepWriterOptions& options) {
  if (auto alive = core_->CheckAlive(); !alive) return ErrorOf(alive);
  auto state = internal::StepState::Create(core_, layout, slab, options);
  if (!state) return ErrorOf(state);
  return StepWriter(std::move(*state));
}

Expected<CopyOutcome> PinnedStager::CopyImage(const Destination& destination,
                                              const internal::HostImage& image,
                                              const Stream& stream, internal::WaitForSlot wait) {
  return core_->CopyPlain(destination, image, stream, wait);
}

Expected<CopyOutcome> PinnedStager::CopyImage(H2DMirror& mirror, const internal::HostImage& image,
                                              const Stream& stream, internal::WaitForSlot wait) {
  if (mirror.state_ == nullptr || &mirror.state_->core() != core_.get()) [[unlikely]]
    return NotOwn(mirror);
  return core_->CopyMirrored(*mirror.state_, image, stream, wait);
}

// REQUIRES: `mirror` is not this stager's.
Expected<CopyOutcome> PinnedStager::NotOwn(const H2DMirror& mirror) {
  Expected<void> own = mirror.CheckMadeBy(core_.get());
  return core_->Counted<CopyOutcome>(ErrorOf(own));
}

static_assert(PinnedStager::kMaxBatchCopies == internal::kMaxBatchEntries);

Expected<CopyOutcome> PinnedStager::CopyBatchImages(std::span<const BatchCopy> copies,
                                                    const Stream& stream,
                                                    internal::WaitForSlot wait) {
  if (copies.size() > kMaxBatchCopies) {
    return core_->Counted<CopyOutcome>(
        InvalidArgument("A batch of " + std::to_string(copies.size()) + " copies is larger than " +
                        std::to_string(kMaxBatchCopies) + "."));
  }
  internal::InlineVector<internal::BatchItem, kMaxBatchCopies> items;
  for (const BatchCopy& copy : copies) {
    internal::BatchItem& item = items.push_back({});
    if (copy.mirror_ != nullptr) {
      if (Expected<void> own = copy.mirror_->CheckMadeBy(core_.get()); !own) {
        return core_->Counted<CopyOutcome>(ErrorOf(own));
      }
      item.mirror = copy.mirror_->state_.get();
    }
    item.destination = copy.destination_;
    item.image = copy.image();
  }
  return core_->CopyBatch(items.all(), stream, wait);
}

Expected<SlotLease> PinnedStager::Acquire(uint64_t bytes) {
  auto slot = core_->Acquire(bytes, internal::WaitForSlot::kYes);
  if (!slot) return ErrorOf(slot);
  return SlotLease(core_, **slot);
}

Expected<std::optional<SlotLease>> PinnedStager::TryAcquire(uint64_t bytes) {
  auto slot = core_->Acquire(bytes, internal::WaitForSlot::kNo);
  if (!slot) return ErrorOf(slot);
  std::optional<SlotLease> lease;
  if (*slot) lease.emplace(SlotLease(core_, **slot));
  return lease;
}

StagerStats PinnedStager::stats() const noexcept { return core_->Stats(); }

const StagerOptions& PinnedStager::options() const noexcept { return core_->options(); }

}  // namespace h2d
