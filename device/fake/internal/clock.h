// Vector clocks: who has seen how much of whom.
#ifndef H2D_DEVICE_FAKE_INTERNAL_CLOCK_H_
#define H2D_DEVICE_FAKE_INTERNAL_CLOCK_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace h2d::fake_internal {

// A lane is a sequence of actions in a fixed order: a host task or a stream.
using LaneIndex = uint32_t;

// The `time`-th action of a lane, from 1; 0 lies before all of them.
struct Epoch {
  LaneIndex lane = 0;
  uint32_t time = 0;
};

// For each lane, how many of its actions happen before the owner's next one.
class Clock {
 public:
  uint32_t at(LaneIndex lane) const noexcept { return lane < times_.size() ? times_[lane] : 0; }

  bool Contains(Epoch epoch) const noexcept { return at(epoch.lane) >= epoch.time; }

  void Set(LaneIndex lane, uint32_t time) {
    if (lane >= times_.size()) times_.resize(lane + 1, 0);
    times_[lane] = time;
  }

  void Join(const Clock& other) {
    if (times_.size() < other.times_.size()) times_.resize(other.times_.size(), 0);
    for (size_t i = 0; i < other.times_.size(); ++i)
      times_[i] = std::max(times_[i], other.times_[i]);
  }

  bool empty() const noexcept { return times_.empty(); }
  size_t lanes() const noexcept { return times_.size(); }

 private:
  std::vector<uint32_t> times_;
};

}  // namespace h2d::fake_internal

#endif  // H2D_DEVICE_FAKE_INTERNAL_CLOCK_H_
