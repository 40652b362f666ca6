// Fails a GoogleTest test when a simulated device saw a hazard, and prints its time line.
//
//   TEST(MyEngine, StagesItsStep) {
//     std::shared_ptr<h2d::FakeDevice> device = h2d::testing::WatchedFakeDevice();
//     ...  // the test fails at its end if `device` reported anything
//   }
//
// or, where the moment matters: `EXPECT_TRUE(h2d::testing::NoHazards(*device));`
#ifndef H2D_DEVICE_FAKE_TESTING_HAZARD_CHECK_H_
#define H2D_DEVICE_FAKE_TESTING_HAZARD_CHECK_H_

#include <gtest/gtest.h>

#include <memory>

#include "h2d/device/fake/fake_device.h"

namespace h2d::testing {

// Success, or a failure with the hazards and the time line.
::testing::AssertionResult NoHazards(const FakeDevice& device);

// From now on the running test fails at its end if `device` holds hazards then. A test that expects
// some looks at them and calls `ClearHazards`. Keeps the device alive until the test's end.
void FailOnHazards(std::shared_ptr<FakeDevice> device);

// `FakeDevice::Create` and `FailOnHazards` in one.
std::shared_ptr<FakeDevice> WatchedFakeDevice(FakeOptions options = {});

}  // namespace h2d::testing

#endif  // H2D_DEVICE_FAKE_TESTING_HAZARD_CHECK_H_
