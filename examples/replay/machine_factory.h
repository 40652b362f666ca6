// The machines that a run can choose from.
#ifndef H2D_EXAMPLES_REPLAY_MACHINE_FACTORY_H_
#define H2D_EXAMPLES_REPLAY_MACHINE_FACTORY_H_

#include <cstdint>
#include <memory>

#include "h2d/device/error.h"
#include "h2d/examples/replay/device_kind.h"
#include "h2d/examples/replay/machine.h"

namespace h2d::replay {

// Errors: the machine has no such device.
Expected<std::unique_ptr<Machine>> NewMachine(DeviceKind kind, uint64_t seed);

}  // namespace h2d::replay

#endif  // H2D_EXAMPLES_REPLAY_MACHINE_FACTORY_H_
