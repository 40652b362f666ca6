#include "h2d/stager/held_source.h"

#include <atomic>

namespace h2d {

void HeldSource::Leak() noexcept {
  // Still reachable, so that a leak checker takes it for what it is: kept on purpose.
  static std::atomic<AnyOwner*> leaked{nullptr};
  AnyOwner* const owner = owner_.release();
  bytes_ = 0;
  if (owner == nullptr) return;
  owner->next_leaked = leaked.load(std::memory_order_relaxed);
  while (!leaked.compare_exchange_weak(owner->next_leaked, owner, std::memory_order_acq_rel)) {
  }
}

}  // namespace h2d
