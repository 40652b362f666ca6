// Where in device memory each tensor of a step goes.
#ifndef H2D_EXAMPLES_REPLAY_DESTINATIONS_H_
#define H2D_EXAMPLES_REPLAY_DESTINATIONS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "h2d/examples/replay/machine.h"
#include "h2d/examples/replay/step_shape.h"

namespace h2d::replay {

// The fixed destinations that the captured graphs read. They exist `sets` times, and step k uses
// set k mod `sets`: so the next step is staged while this one is read. Within a set each graph has
// its own token tensors, and all share the tensors of the batch.
class Destinations {
 public:
  static Expected<Destinations> Allocate(Machine& machine, const StepShape& shape, uint32_t sets);

  // The destination's number, from 0; those of one set are consecutive, `per_set` of them.
  size_t IndexOf(uint32_t set, TensorKind kind, size_t graph) const noexcept;
  size_t per_set() const noexcept { return per_set_; }
  std::span<const Destination> all() const noexcept { return all_; }

  // What graph `graph` of set `set` reads, in the order of `kAllTensors`.
  std::span<const Destination> ReadBy(uint32_t set, size_t graph) const noexcept;

 private:
  Destinations(const StepShape& shape, uint32_t sets);

  size_t graphs_;
  size_t per_set_;
  std::vector<Destination> all_;
  std::vector<std::vector<Destination>> read_by_;  // by set and graph
};

}  // namespace h2d::replay

#endif  // H2D_EXAMPLES_REPLAY_DESTINATIONS_H_
