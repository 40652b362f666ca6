#include "h2d/stager/h2d_mirror.h"

#include <utility>

#include "h2d/stager/internal/mirror_state.h"
#include "h2d/stager/internal/stager_core.h"

namespace h2d {

H2DMirror::H2DMirror(std::shared_ptr<internal::MirrorState> state) noexcept
    : state_(std::move(state)) {}
H2DMirror::H2DMirror(H2DMirror&&) noexcept = default;
H2DMirror& H2DMirror::operator=(H2DMirror&&) noexcept = default;
H2DMirror::~H2DMirror() = default;

Expected<void> H2DMirror::CheckMadeBy(const internal::StagerCore* core) const {
  if (state_ == nullptr) return FailedPrecondition("The mirror was moved from.");
  if (core != nullptr && &state_->core() != core) {
    return InvalidArgument("The mirror was made by another stager.");
  }
  return {};
}

Expected<bool> H2DMirror::MatchesImage(const internal::HostImage& image) const {
  if (auto valid = CheckMadeBy(nullptr); !valid) return ErrorOf(valid);
  return state_->core().Matches(*state_, image);
}

Expected<void> H2DMirror::RecordImage(const internal::HostImage& image, const Stream& stream) {
  if (auto valid = CheckMadeBy(nullptr); !valid) return valid;
  return state_->core().RecordMirror(*state_, image, stream);
}

void H2DMirror::Invalidate() noexcept {
  if (state_ != nullptr) state_->core().Invalidate(*state_);
}

Expected<void> H2DMirror::Rebind(const Destination& destination) {
  if (auto valid = CheckMadeBy(nullptr); !valid) return valid;
  return state_->core().Rebind(*state_, destination);
}

Destination H2DMirror::destination() const noexcept {
  if (state_ == nullptr || !state_->core().in_own_process()) return {};
  MutexLock lock(state_->mutex());
  return state_->destination();
}

}  // namespace h2d
