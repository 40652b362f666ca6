// Random plans on a GPU: the same plans, the same stager and the same oracle as on the simulated
// device. Skipped, with the reason, where there is no GPU.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>

#include "h2d/device/cuda/cuda_device.h"
#include "h2d/tests/cuda/cuda_plan_harness.h"
#include "h2d/tests/support/property.h"
#include "h2d/tests/support/random_runs.h"
#include "h2d/tests/support/real_stager.h"

namespace h2d::testing {
namespace {

class CudaPlansTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // Before the driver is first used; see the conformance suite's main function.
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", /*overwrite=*/1);
    setenv("CUDA_MODULE_LOADING", "EAGER", /*overwrite=*/1);
    Expected<std::shared_ptr<CudaDevice>> device = CudaDevice::Create(0);
    if (!device) GTEST_SKIP() << device.error().message;
    device_ = *std::move(device);
    const auto harness = MakeCudaPlanHarness(device_);
    ASSERT_TRUE(harness.has_value()) << harness.error().ToString();
  }

  void ExpectPlansHold(const char* name, const PlanProfile& profile, uint64_t plans) {
    const PlanCheck check = [&](const Plan& plan, bool) {
      return RunPlan(plan, **MakeCudaPlanHarness(device_), MakeRealStager);
    };
    const PropertyReport report = CheckPlans(name, profile, check, RunsFromEnvironment(plans));
    std::cout << name << " on a GPU: " << ToString(report) << "\n";
    EXPECT_EQ(report.failure, "");
  }

  std::shared_ptr<CudaDevice> device_;
};

TEST_F(CudaPlansTest, EveryReaderSeesWhatFullCopiesWouldHaveLeft) {
  ExpectPlansHold("content", GeneralProfile(), 1000);
}

TEST_F(CudaPlansTest, NoCaptureIsHurtAndNoneIsEntered) {
  ExpectPlansHold("captures", ProfileWith({{OpKind::kBeginCapture, 12}, {OpKind::kEndCapture, 6}}),
                  300);
}

TEST_F(CudaPlansTest, FaultsAreErrorsAndNeverCompletions) {
  ExpectPlansHold("faults", ProfileWith({{OpKind::kFault, 8}}), 300);
}

}  // namespace
}  // namespace h2d::testing
