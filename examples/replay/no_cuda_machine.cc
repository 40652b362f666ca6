// In place of cuda_machine.cc where there is no CUDA toolkit.
#include "h2d/examples/replay/cuda_machine.h"

namespace h2d::replay {

Expected<std::unique_ptr<Machine>> NewCudaMachine() {
  return FailedPrecondition("This program was built on a machine without the CUDA toolkit.");
}

}  // namespace h2d::replay
