// How a step's tensors get to the device: the part of an engine that h2d replaces.
#ifndef H2D_EXAMPLES_REPLAY_STEP_STAGING_H_
#define H2D_EXAMPLES_REPLAY_STEP_STAGING_H_

#include <cstddef>
#include <cstdint>

#include "h2d/device/error.h"
#include "h2d/device/stream.h"
#include "h2d/examples/replay/step_tensors.h"
#include "h2d/stager/stager_stats.h"

namespace h2d::replay {

// One step, as it is to be staged. A view.
struct StepInputs {
  uint32_t slab;  // where to
  size_t graph;   // which will read it
  const StepTensors& tensors;
  const Stream& plan;
  // Of what is prepared for new requests; `plan` itself in a step that admits none.
  const Stream& admissions;
};

class StepStaging {
 public:
  virtual ~StepStaging() = default;
  StepStaging(const StepStaging&) = delete;
  StepStaging& operator=(const StepStaging&) = delete;

  // Makes the slab hold the step's tensors, their padding included, for whoever is ordered after
  // this call on both of the step's streams.
  [[nodiscard]] virtual Expected<void> Stage(const StepInputs& step) = 0;

  // What happened so far.
  virtual StagerStats stats() const = 0;

 protected:
  StepStaging() = default;
};

}  // namespace h2d::replay

#endif  // H2D_EXAMPLES_REPLAY_STEP_STAGING_H_
