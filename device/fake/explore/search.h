// Random runs, one a seed, until one fails.
#ifndef H2D_DEVICE_FAKE_EXPLORE_SEARCH_H_
#define H2D_DEVICE_FAKE_EXPLORE_SEARCH_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "h2d/device/fake/choice.h"

namespace h2d {

struct SearchReport {
  std::string failure;  // of the last run; empty: none failed
  uint64_t runs = 0;
  uint64_t seed = 0;  // of the last run: the same seed gives the same run
};

// Makes up to `runs` runs with the seeds from `first_seed` on. `strategy` makes the choices of a
// seed, e.g. a `HashChoices` (random, with swarm weights) or a `PriorityChoices`; `run` makes a run
// of them and answers what was wrong with it, if anything was.
SearchReport SearchSeeds(
    uint64_t first_seed, uint64_t runs,
    const std::function<std::shared_ptr<ChoiceSource>(uint64_t seed)>& strategy,
    const std::function<std::string(const std::shared_ptr<ChoiceSource>& choices)>& run);

}  // namespace h2d

#endif  // H2D_DEVICE_FAKE_EXPLORE_SEARCH_H_
