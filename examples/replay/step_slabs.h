// The device memory that the captured graphs read: a slab, as often as steps take turns.
#ifndef H2D_EXAMPLES_REPLAY_STEP_SLABS_H_
#define H2D_EXAMPLES_REPLAY_STEP_SLABS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "h2d/examples/replay/machine.h"
#include "h2d/examples/replay/step_fields.h"
#include "h2d/examples/replay/step_shape.h"

namespace h2d::replay {

// Slabs of one layout. Step k uses slab k mod `count`, so that with two of them the next step is
// staged while this one is read.
class StepSlabs {
 public:
  static Expected<StepSlabs> Allocate(Machine& machine, const StepShape& shape, uint32_t count);

  const StepFields& fields() const noexcept { return fields_; }
  std::span<const DevicePtr> slabs() const noexcept { return slabs_; }

  // The tensors of all slabs, for who copies each by itself: those of one slab are consecutive,
  // `per_slab` of them, and `IndexOf` is a tensor's number.
  std::span<const Destination> tensors() const noexcept { return tensors_; }
  size_t per_slab() const noexcept { return per_slab_; }
  size_t IndexOf(uint32_t slab, TensorKind kind, size_t graph) const noexcept;

  // What graph `graph` of slab `slab` reads, in the order of `kAllTensors`.
  std::span<const Destination> ReadBy(uint32_t slab, size_t graph) const noexcept;

  // Which field lies where, a line each: messages of a device tell only offsets.
  std::string Legend() const;

 private:
  StepSlabs(StepFields fields, const StepShape& shape, std::vector<DevicePtr> slabs);

  StepFields fields_;
  std::vector<DevicePtr> slabs_;
  size_t graphs_;
  size_t per_slab_;
  std::vector<Destination> tensors_;
  std::vector<std::vector<Destination>> read_by_;  // by slab and graph
};

}  // namespace h2d::replay

#endif  // H2D_EXAMPLES_REPLAY_STEP_SLABS_H_
