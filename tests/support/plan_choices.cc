#include "h2d/tests/support/plan_choices.h"

namespace h2d::testing {

PlanChoices::PlanChoices(const Plan& plan) {
  for (const PlanOp& op : plan.ops) {
    uint32_t seed = 0;
    for (const uint8_t byte : op.choices) seed = seed << 8 | byte;
    seeds_.push_back(seed);
  }
}

uint32_t PlanChoices::Draw(const ChoicePoint& point, uint32_t n) {
  if (calm_ || point.operation >= seeds_.size()) return 0;
  const uint32_t seed = seeds_[point.operation];
  if (seed == 0) return 0;
  const uint64_t bits =
      MixBits(MixBits(seed) ^ (static_cast<uint64_t>(point.site) << 32 | point.repeat));
  const uint32_t eighths = 1 + (seed & 7);
  if ((bits >> 40 & 7) >= eighths) return 0;
  return static_cast<uint32_t>(bits & 0xffffff) % n;
}

}  // namespace h2d::testing
