// Plans on a GPU.
#ifndef H2D_TESTS_CUDA_CUDA_PLAN_HARNESS_H_
#define H2D_TESTS_CUDA_CUDA_PLAN_HARNESS_H_

#include <memory>

#include "h2d/device/cuda/cuda_device.h"
#include "h2d/device/error.h"
#include "h2d/tests/support/plan_harness.h"

namespace h2d::testing {

// Tasks are threads that run one at a time. Hardware decides what a plan's choices decide on the
// simulated device: a held stream completes nothing before its release, virtual time does not pass,
// and races are seen only by what readers find. One at a time in a process.
// Errors: the memory that all plans of the process share could not be allocated.
Expected<std::unique_ptr<PlanHarness>> MakeCudaPlanHarness(std::shared_ptr<CudaDevice> device);

}  // namespace h2d::testing

#endif  // H2D_TESTS_CUDA_CUDA_PLAN_HARNESS_H_
