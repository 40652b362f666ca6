// How a step's tensors get to the device: the part of an engine that h2d replaces.
#ifndef H2D_EXAMPLES_REPLAY_STEP_STAGING_H_
#define H2D_EXAMPLES_REPLAY_STEP_STAGING_H_

#include <cstddef>

#include "h2d/device/error.h"
#include "h2d/device/stream.h"
#include "h2d/examples/replay/tensors.h"
#include "h2d/stager/stager_stats.h"

namespace h2d::replay {

class StepStaging {
 public:
  virtual ~StepStaging() = default;
  StepStaging(const StepStaging&) = delete;
  StepStaging& operator=(const StepStaging&) = delete;

  // Makes destination number `destination` hold `tensor`, its padding included, for whoever is
  // ordered after this call on `stream`.
  [[nodiscard]] virtual Expected<void> Stage(size_t destination, const TensorView& tensor,
                                             const Stream& stream) = 0;

  // What happened so far.
  virtual StagerStats stats() const = 0;

 protected:
  StepStaging() = default;
};

}  // namespace h2d::replay

#endif  // H2D_EXAMPLES_REPLAY_STEP_STAGING_H_
