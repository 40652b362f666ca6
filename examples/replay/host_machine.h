// Plain host memory as the replay's machine: every copy and graph is done when its call returns.
#ifndef H2D_EXAMPLES_REPLAY_HOST_MACHINE_H_
#define H2D_EXAMPLES_REPLAY_HOST_MACHINE_H_

#include <memory>

#include "h2d/examples/replay/machine.h"

namespace h2d::replay {

// It shows what the staging itself costs the host; it can see no race.
std::unique_ptr<Machine> NewHostMachine();

}  // namespace h2d::replay

#endif  // H2D_EXAMPLES_REPLAY_HOST_MACHINE_H_
