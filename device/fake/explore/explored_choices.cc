#include "h2d/device/fake/explore/explored_choices.h"

#include <utility>

namespace h2d {

FakeOptions OptionsToExplore(std::shared_ptr<ChoiceSource> choices) {
  FakeOptions options;
  options.choices = std::move(choices);
  options.latencies.copy = VirtualTime(0);
  options.latencies.copy_bytes_per_second = 0;
  options.keep_trace = false;
  options.max_hazards = 1;
  return options;
}

}  // namespace h2d
