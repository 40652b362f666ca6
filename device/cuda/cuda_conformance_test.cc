// The conformance suite on a GPU. Skipped, with the reason, where there is none.
#include <cstdio>
#include <cstdlib>

#include "h2d/device/conformance/run.h"
#include "h2d/device/cuda/cuda_device.h"
#include "h2d/device/cuda/testing/cuda_harness.h"

int main(int argc, char** argv) {
  // Streams that share a hardware queue hold each other up; a test uses fewer than this.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", /*overwrite=*/1);
  // Loading a kernel at its first use may wait for the device, whose streams a test may hold.
  setenv("CUDA_MODULE_LOADING", "EAGER", /*overwrite=*/1);
  if (const auto device = h2d::CudaDevice::Create(0); !device) {
    std::printf("conformance of cuda: SKIPPED. %s\n", device.error().message.c_str());
    return 0;
  }
  h2d::conformance::Backend backend;
  backend.name = "cuda";
  backend.make_harness = [] { return h2d::conformance::MakeCudaHarness(0, /*with_second=*/true); };
  return h2d::conformance::RunConformance(argc, argv, backend);
}
