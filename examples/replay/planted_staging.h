// Staging as it is often written by hand, each with one bug: for `--plant`.
#ifndef H2D_EXAMPLES_REPLAY_PLANTED_STAGING_H_
#define H2D_EXAMPLES_REPLAY_PLANTED_STAGING_H_

#include <cstdint>
#include <memory>
#include <span>

#include "h2d/device/device.h"
#include "h2d/device/device_ptr.h"
#include "h2d/examples/replay/step_staging.h"
#include "h2d/stager/stager_options.h"

namespace h2d::replay {

// A ring of `slots` pinned buffers of `slot_bytes` bytes that are reused in turn. The bug: nobody
// waits until the device has read a buffer.
Expected<std::unique_ptr<StepStaging>> NewRingWithoutWait(const std::shared_ptr<Device>& device,
                                                          std::span<const Destination> destinations,
                                                          uint32_t slots, uint64_t slot_bytes);

// Skips a tensor that is equal to what was last sent for it. The bug: it remembers one content for
// all `per_set` destinations that take turns, where each holds what was sent one turn earlier.
Expected<std::unique_ptr<StepStaging>> NewStagingWithSharedMirror(
    const std::shared_ptr<Device>& device, std::span<const Destination> destinations,
    size_t per_set, const StagerOptions& options);

}  // namespace h2d::replay

#endif  // H2D_EXAMPLES_REPLAY_PLANTED_STAGING_H_
