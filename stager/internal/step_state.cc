#include "h2d/stager/internal/step_state.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "h2d/device/checked_size.h"
#include "h2d/stager/internal/state_mark.h"

namespace h2d::internal {

Expected<std::unique_ptr<StepState>> StepState::Create(std::shared_ptr<StagerCore> core,
                                                       const StepLayout& layout, DevicePtr slab,
                                                       const StepWriterOptions& options) {
  if (slab.is_null()) return InvalidArgument("The slab of the step writer is null.");
  if (slab.address() % StepLayout::kMaxAlignment != 0 ||
      !CheckedSum(slab.address(), layout.slab_bytes())) {
    return InvalidArgument("The slab at address " + std::to_string(slab.address()) + " of " +
                           std::to_string(layout.slab_bytes()) +
                           " bytes must start at a multiple of " +
                           std::to_string(StepLayout::kMaxAlignment) + " and end within 64 bits.");
  }
  auto image = StepImage::Create(layout);
  if (!image) return ErrorOf(image);
  std::unique_ptr<StepState> state(
      new StepState(std::move(core), layout, slab, options, std::move(*image)));
  auto scratch = state->TakeScratch();
  if (!scratch) return ErrorOf(scratch);
  state->GiveScratch(*std::move(scratch));
  auto added = state->registry_->Add(slab, layout.slab_bytes(), &state->forgets_);
  if (!added) return ErrorOf(added);
  state->registered_ = true;
  return state;
}

StepState::StepState(std::shared_ptr<StagerCore> core, const StepLayout& layout, DevicePtr slab,
                     const StepWriterOptions& options, StepImage image)
    : core_(std::move(core)),
      registry_(core_->registry()),
      layout_(layout),
      layout_id_(layout.id()),
      slab_(slab),
      options_(options),
      image_(std::move(image)) {}

StepState::~StepState() {
  if (registered_ && core_->in_own_process()) registry_->Remove(slab_);
}

Expected<HostBytes> StepState::TakeScratch() {
  if (scratch_ != nullptr) return std::move(scratch_);
  uint64_t largest = 0;
  for (const StepLayout::FieldInfo& field : layout_.fields()) {
    largest = std::max(largest, field.bytes());
  }
  return AllocateHostBytes(largest);
}

std::span<const ByteSpan> StepState::SpansToSend() {
  ForgetIfOverwritten();
  return image_.SpansToSend(options_.cover_gap_bytes);
}

bool StepState::Knows(uint32_t field) {
  ForgetIfOverwritten();
  return image_.Knows(field);
}

void StepState::ForgetIfOverwritten() {
  const uint64_t forgets = forgets_.Load();
  if (forgets == forgets_seen_) return;
  Reached(Mark::kStepOverwritten);
  image_.ForgetAll();
  forgets_seen_ = forgets;
}

}  // namespace h2d::internal
