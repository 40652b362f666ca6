// Staging by a copy of its own for each tensor.
#ifndef H2D_EXAMPLES_REPLAY_SEPARATE_STAGING_H_
#define H2D_EXAMPLES_REPLAY_SEPARATE_STAGING_H_

#include <cstddef>
#include <memory>

#include "h2d/device/device.h"
#include "h2d/examples/replay/step_slabs.h"
#include "h2d/examples/replay/step_staging.h"
#include "h2d/examples/replay/tensors.h"
#include "h2d/stager/stager_options.h"

namespace h2d::replay {

// Stages a step tensor by tensor. What belongs to requests (block tables, sampling parameters,
// seeds) goes out on the admissions' stream, as in engines whose scheduler prepares new requests
// beside the running batch.
class SeparateStaging : public StepStaging {
 public:
  Expected<void> Stage(const StepInputs& step) final;

 protected:
  // `slabs` outlives it.
  explicit SeparateStaging(const StepSlabs& slabs) : slabs_(slabs) {}

 private:
  // Makes tensor number `index` of the slabs hold `tensor`, for whoever is ordered after this call
  // on `stream`.
  virtual Expected<void> StageTensor(size_t index, const TensorView& tensor,
                                     const Stream& stream) = 0;

  const StepSlabs& slabs_;
};

// A mirror for each tensor: what is there already does not travel.
Expected<std::unique_ptr<StepStaging>> NewSeparateMirroredStaging(
    const std::shared_ptr<Device>& device, const StepSlabs& slabs, const StagerOptions& options);

// No mirrors: every tensor travels in full.
Expected<std::unique_ptr<StepStaging>> NewSeparateStaging(const std::shared_ptr<Device>& device,
                                                          const StepSlabs& slabs,
                                                          const StagerOptions& options);

}  // namespace h2d::replay

#endif  // H2D_EXAMPLES_REPLAY_SEPARATE_STAGING_H_
