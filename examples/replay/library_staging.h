// Staging with h2d.
#ifndef H2D_EXAMPLES_REPLAY_LIBRARY_STAGING_H_
#define H2D_EXAMPLES_REPLAY_LIBRARY_STAGING_H_

#include <cstdint>
#include <memory>
#include <span>

#include "h2d/device/device.h"
#include "h2d/device/device_ptr.h"
#include "h2d/examples/replay/step_staging.h"
#include "h2d/stager/stager_options.h"

namespace h2d::replay {

// A ring of `slots` slots with room for images of up to `largest_image_bytes`. It begins with half
// of the slots and none of the room for the largest images, and grows when it has to.
StagerOptions RingOptions(uint32_t slots, uint64_t largest_image_bytes);

// A mirror for each destination: what is there already does not travel.
Expected<std::unique_ptr<StepStaging>> NewMirroredStaging(const std::shared_ptr<Device>& device,
                                                          std::span<const Destination> destinations,
                                                          const StagerOptions& options);

// No mirrors: every image travels in full.
Expected<std::unique_ptr<StepStaging>> NewPlainStaging(const std::shared_ptr<Device>& device,
                                                       std::span<const Destination> destinations,
                                                       const StagerOptions& options);

}  // namespace h2d::replay

#endif  // H2D_EXAMPLES_REPLAY_LIBRARY_STAGING_H_
