// Priority-bounded random scheduling of host tasks.
#ifndef H2D_DEVICE_FAKE_EXPLORE_PRIORITY_CHOICES_H_
#define H2D_DEVICE_FAKE_EXPLORE_PRIORITY_CHOICES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "h2d/device/fake/choice.h"

namespace h2d {

// Probabilistic concurrency testing (S. Burckhardt, P. Kothari, M. Musuvathi, S. Nagarakatte,
// ASPLOS 2010). Each task has a random priority and the highest one that can run does, but at
// `depth` - 1 random steps of the run the task that leads falls behind all others. A fault that
// needs `depth` orderings among tasks is found in a run of at most `steps` scheduling points with
// odds of at least 1 in tasks * steps^(depth - 1), however rarely a fair scheduler hits it.
// The device's own choices are those of `HashChoices`, with its swarm of weights.
class PriorityChoices final : public ChoiceSource {
 public:
  PriorityChoices(uint64_t seed, uint32_t depth, uint32_t steps);

  void OnTasks(std::span<const uint32_t> tasks) override;

 private:
  uint32_t Draw(const ChoicePoint& point, uint32_t n) override;
  uint64_t PriorityOf(uint32_t task);

  HashChoices others_;
  uint64_t seed_;
  std::vector<uint32_t> falls_;       // the steps at which the leader falls behind
  std::vector<uint64_t> priorities_;  // by task; higher runs first
  uint64_t lowest_;
  uint32_t step_ = 0;
  uint32_t picked_ = 0;
};

}  // namespace h2d

#endif  // H2D_DEVICE_FAKE_EXPLORE_PRIORITY_CHOICES_H_
