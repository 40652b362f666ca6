// The choices of a simulated device, made by an exploration.
#ifndef H2D_DEVICE_FAKE_EXPLORE_EXPLORED_CHOICES_H_
#define H2D_DEVICE_FAKE_EXPLORE_EXPLORED_CHOICES_H_

#include <cstdint>
#include <memory>

#include "h2d/device/fake/choice.h"
#include "h2d/device/fake/explore/exploration.h"
#include "h2d/device/fake/fake_device.h"

namespace h2d {

// Explored is what the host can see: which task goes on, what queries answer and which event a wait
// does. At all other sites the device is kind. When a source is read needs no exploration, because
// it commutes with all but a write into a source in flight, and such a one is reported whenever the
// source was read.
//
// Make one for each run; `exploration` outlives it.
class ExploredChoices final : public ChoiceSource {
 public:
  // At most `max_late` queries of the run answer late: a bound for programs that poll.
  explicit ExploredChoices(Exploration& exploration, uint32_t max_late = ~uint32_t{0})
      : exploration_(exploration), late_left_(max_late) {}

  void OnTasks(std::span<const uint32_t> tasks) override { picked_ = exploration_.PickTask(tasks); }

  // From now on the device is kind.
  void Calm() noexcept { calm_ = true; }

  // The running task waits, or has waited, for any of several events. Its first look at them needs
  // no decisions: what it could answer the wait can answer, too.
  void SetWaiting(bool waiting) noexcept {
    const uint64_t bit = uint64_t{1} << (exploration_.running() % 64);
    waiting_ = waiting ? waiting_ | bit : waiting_ & ~bit;
  }

 private:
  uint32_t Draw(const ChoicePoint& point, uint32_t n) override {
    if (point.site == ChoiceSite::kTask) return picked_;
    if (calm_) return 0;
    if (point.site == ChoiceSite::kWaitAnswer) return exploration_.Decide(n);
    if (point.site != ChoiceSite::kSeenLate) return 0;
    const bool waits = (waiting_ >> (exploration_.running() % 64) & 1) != 0;
    if (waits) return 1;
    if (late_left_ == 0) return 0;
    const uint32_t late = exploration_.Decide(2);
    late_left_ -= late;
    return late;
  }

  Exploration& exploration_;
  uint32_t late_left_;
  uint32_t picked_ = 0;
  uint64_t waiting_ = 0;  // by task
  bool calm_ = false;
};

// A device on which every completion may be seen at once or late, as the choices say: nothing takes
// time, so that which answers are possible does not depend on latencies.
FakeOptions OptionsToExplore(std::shared_ptr<ChoiceSource> choices);

}  // namespace h2d

#endif  // H2D_DEVICE_FAKE_EXPLORE_EXPLORED_CHOICES_H_
