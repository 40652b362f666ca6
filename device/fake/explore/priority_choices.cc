#include "h2d/device/fake/explore/priority_choices.h"

#include <algorithm>

namespace h2d {
namespace {

// Priorities at the start lie above all to which a task may fall.
constexpr uint64_t kInitially = uint64_t{1} << 32;

uint64_t Mix(uint64_t seed, uint64_t number) {
  return MixBits(MixBits(seed) + 0x9e3779b97f4a7c15ULL * (number + 1));
}

}  // namespace

PriorityChoices::PriorityChoices(uint64_t seed, uint32_t depth, uint32_t steps)
    : others_(seed), seed_(seed), lowest_(depth) {
  for (uint32_t i = 1; i < depth; ++i) {
    falls_.push_back(static_cast<uint32_t>(Mix(seed, ~uint64_t{i}) % std::max(steps, 1U)));
  }
}

uint64_t PriorityChoices::PriorityOf(uint32_t task) {
  while (priorities_.size() <= task) {
    priorities_.push_back(kInitially | Mix(seed_, priorities_.size()) >> 1);
  }
  return priorities_[task];
}

void PriorityChoices::OnTasks(std::span<const uint32_t> tasks) {
  const auto lead = [&] {
    return *std::ranges::max_element(tasks, {}, [&](uint32_t task) { return PriorityOf(task); });
  };
  uint32_t leader = lead();
  if (std::ranges::count(falls_, step_++) != 0 && lowest_ > 0) {
    priorities_[leader] = --lowest_;
    leader = lead();
  }
  picked_ = static_cast<uint32_t>(std::ranges::find(tasks, leader) - tasks.begin());
}

uint32_t PriorityChoices::Draw(const ChoicePoint& point, uint32_t n) {
  if (point.site == ChoiceSite::kTask) return picked_;
  return others_.Choose(point.operation, point.site, n);
}

}  // namespace h2d
