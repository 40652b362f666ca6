#include "h2d/examples/load_file/target_device.h"

namespace h2d::load_file {

Expected<std::unique_ptr<TargetDevice>> NewCudaTarget() {
  return FailedPrecondition("This program was built without CUDA.");
}

}  // namespace h2d::load_file
