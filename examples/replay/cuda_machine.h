// A GPU as the replay's machine.
#ifndef H2D_EXAMPLES_REPLAY_CUDA_MACHINE_H_
#define H2D_EXAMPLES_REPLAY_CUDA_MACHINE_H_

#include <memory>

#include "h2d/device/error.h"
#include "h2d/examples/replay/machine.h"

namespace h2d::replay {

// A step is a kernel that keeps the stream busy, then a CUDA graph, captured once for each set of
// destinations and snapshot, that reads what it is given. Time is short on a GPU: a step takes a
// 64th of what the plan says.
// Errors: this program was built without CUDA; there is no GPU, or the driver is too old.
Expected<std::unique_ptr<Machine>> NewCudaMachine();

}  // namespace h2d::replay

#endif  // H2D_EXAMPLES_REPLAY_CUDA_MACHINE_H_
