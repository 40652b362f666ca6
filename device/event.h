// A point in a stream's work that can be waited for.
#ifndef H2D_DEVICE_EVENT_H_
#define H2D_DEVICE_EVENT_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "h2d/device/handle_owner.h"

namespace h2d {

// Complete is an answer, not a bool: an error is never taken for a completion (I5).
enum class EventState : uint8_t { kPending, kComplete };

// Owns an event of one device; made by `Device::CreateEvent`. Move-only: a moved-from event names
// nothing and every use of it is an invalid argument. It has no default constructor, so that no
// success can carry an event that is none. It may outlive its device.
//
// Thread-safety: a const `Event` may be used from any number of threads at once; moving, destroying
// and re-recording one need the caller's own exclusion.
class Event {
 public:
  // For backends: takes ownership of the event that `owner` knows as `raw` (not 0).
  static Event ForBackend(std::shared_ptr<HandleOwner> owner, uint64_t raw) noexcept {
    return Event(std::move(owner), raw);
  }

  Event(Event&& other) noexcept
      : owner_(std::move(other.owner_)), raw_(std::exchange(other.raw_, 0)) {}
  Event& operator=(Event&& other) noexcept {
    if (this != &other) {
      Destroy();
      owner_ = std::move(other.owner_);
      raw_ = std::exchange(other.raw_, 0);
    }
    return *this;
  }
  ~Event() { Destroy(); }

  // For backends: whose event this is, and its name there; null and 0 after a move.
  const HandleOwner* owner() const noexcept { return owner_.get(); }
  uint64_t raw() const noexcept { return raw_; }

 private:
  Event(std::shared_ptr<HandleOwner> owner, uint64_t raw) noexcept
      : owner_(std::move(owner)), raw_(raw) {}

  void Destroy() noexcept {
    if (raw_ != 0 && owner_->in_own_process()) owner_->DestroyEvent(raw_);
  }

  std::shared_ptr<HandleOwner> owner_;
  uint64_t raw_;
};

}  // namespace h2d

#endif  // H2D_DEVICE_EVENT_H_
