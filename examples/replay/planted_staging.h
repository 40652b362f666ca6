// Staging as it is often written by hand, each with one bug: for `--plant`.
#ifndef H2D_EXAMPLES_REPLAY_PLANTED_STAGING_H_
#define H2D_EXAMPLES_REPLAY_PLANTED_STAGING_H_

#include <cstdint>
#include <memory>

#include "h2d/device/device.h"
#include "h2d/examples/replay/step_slabs.h"
#include "h2d/examples/replay/step_staging.h"
#include "h2d/stager/stager_options.h"

namespace h2d::replay {

// A ring of `slots` pinned buffers with room for the largest tensor, reused in turn. The bug:
// nobody waits until the device has read a buffer.
Expected<std::unique_ptr<StepStaging>> NewRingWithoutWait(const std::shared_ptr<Device>& device,
                                                          const StepSlabs& slabs, uint32_t slots);

// Skips a tensor that is equal to what was last sent for it. The bug: it remembers one content for
// all slabs, which take turns and so hold what was sent one turn earlier.
Expected<std::unique_ptr<StepStaging>> NewStagingWithSharedMirror(
    const std::shared_ptr<Device>& device, const StepSlabs& slabs, const StagerOptions& options);

}  // namespace h2d::replay

#endif  // H2D_EXAMPLES_REPLAY_PLANTED_STAGING_H_
