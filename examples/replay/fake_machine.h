// The simulated device as the replay's machine.
#ifndef H2D_EXAMPLES_REPLAY_FAKE_MACHINE_H_
#define H2D_EXAMPLES_REPLAY_FAKE_MACHINE_H_

#include <cstdint>
#include <memory>

#include "h2d/examples/replay/machine.h"

namespace h2d::replay {

// Every race is seen, whatever schedule ran. When the device reads a copy's source, when it tells
// of a completion and of which one first is drawn from `seed`.
std::unique_ptr<Machine> NewFakeMachine(uint64_t seed);

}  // namespace h2d::replay

#endif  // H2D_EXAMPLES_REPLAY_FAKE_MACHINE_H_
