// Staging by one transfer for the whole step.
#ifndef H2D_EXAMPLES_REPLAY_PACKED_STAGING_H_
#define H2D_EXAMPLES_REPLAY_PACKED_STAGING_H_

#include <memory>

#include "h2d/device/device.h"
#include "h2d/examples/replay/step_slabs.h"
#include "h2d/examples/replay/step_staging.h"
#include "h2d/stager/stager_options.h"
#include "h2d/stager/step_writer_options.h"

namespace h2d::replay {

// A writer for each slab: what the slab holds already does not travel, and a step that brings
// nothing new makes no copy at all. `slabs` outlives it.
Expected<std::unique_ptr<StepStaging>> NewPackedMirroredStaging(
    const std::shared_ptr<Device>& device, const StepSlabs& slabs, const StagerOptions& options,
    const StepWriterOptions& writer_options);

// The same, but nothing is compared and every tensor of the step travels.
Expected<std::unique_ptr<StepStaging>> NewPackedStaging(const std::shared_ptr<Device>& device,
                                                        const StepSlabs& slabs,
                                                        const StagerOptions& options,
                                                        const StepWriterOptions& writer_options);

}  // namespace h2d::replay

#endif  // H2D_EXAMPLES_REPLAY_PACKED_STAGING_H_
