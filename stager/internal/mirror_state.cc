#include "h2d/stager/internal/mirror_state.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "h2d/stager/internal/stager_core.h"
#include "h2d/stager/internal/state_mark.h"

namespace h2d::internal {
namespace {

void MarkTrim(const ImageBytes& image, ByteSpan span) noexcept {
  const bool front = span.begin > 0;
  const bool back = span.end < image.bytes();
  if (front && back) Reached(Mark::kTrimBothEnds);
  if (front && !back) Reached(Mark::kTrimFront);
  if (back && !front) Reached(Mark::kTrimBack);
  if (span.end > image.value_bytes) Reached(Mark::kPaddingDiffers);
}

uint64_t NextRank() noexcept {
  static std::atomic<uint64_t> next{0};
  return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

MirrorState::MirrorState(std::shared_ptr<StagerCore> core, const Destination& destination,
                         HostBytes held)
    : core_(std::move(core)),
      registry_(core_->registry()),
      rank_(NextRank()),
      destination_(destination),
      held_(std::move(held)) {}

Expected<std::shared_ptr<MirrorState>> MirrorState::Create(std::shared_ptr<StagerCore> core,
                                                           const Destination& destination,
                                                           uint64_t bytes) {
  auto held = AllocateHostBytes(bytes);
  if (!held) return ErrorOf(held);
  std::shared_ptr<MirrorState> state(
      new MirrorState(std::move(core), destination, std::move(*held)));
  Expected<void> added = state->registry_->Add(destination.ptr, bytes, &state->forgets_);
  if (!added) return ErrorOf(added);
  MutexLock lock(state->mutex_);
  state->registered_ = true;
  return state;
}

MirrorState::~MirrorState() {
  if (!core_->in_own_process()) return;
  MutexLock lock(mutex_);
  if (registered_) registry_->Remove(destination_.ptr);
}

ByteSpan MirrorState::Differing(const ImageBytes& image, uint64_t min_trim_bytes) {
  const uint64_t bytes = image.bytes();
  const uint64_t comparable = std::min(bytes, known_bytes_);
  ByteSpan span = Difference(image, held_.get(), comparable);
  if (comparable < bytes) span = {span.empty() ? comparable : span.begin, bytes};
  if (span.empty()) return span;
  span = WholeElements(span, image.element_bytes);
  if (bytes - span.bytes() < min_trim_bytes) span = {0, bytes};
  if (span.bytes() < bytes) MarkTrim(image, span);
  return span;
}

bool MirrorState::Holds(const ImageBytes& image) {
  ForgetIfOverwritten();
  return image.bytes() <= known_bytes_ && Difference(image, held_.get(), image.bytes()).empty();
}

void MirrorState::Remember(const ImageBytes& image, ByteSpan span) {
  Fill(image, span, held_.get() + span.begin);
  known_bytes_ = std::max(known_bytes_, image.bytes());
}

void MirrorState::Commit(const CopyRef& copy, bool enqueued) {
  order_.Commit(copy);
  ++commits_;
  if (!enqueued) Forget();
}

void MirrorState::ForgetAndMark(SlotRing& ring) {
  if (order_.MayRun(ring)) Reached(Mark::kForgetInFlight);
  Forget();
}

Expected<void> MirrorState::Rebind(const Destination& destination, uint64_t bytes) {
  auto held = AllocateHostBytes(bytes);
  if (!held) return ErrorOf(held);
  Expected<void> moved = registry_->Move(destination_.ptr, destination.ptr, bytes);
  if (!moved) return moved;
  destination_ = destination;
  held_ = std::move(*held);
  Forget();
  Reached(Mark::kRebind);
  return {};
}

}  // namespace h2d::internal
