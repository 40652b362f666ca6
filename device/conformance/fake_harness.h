// The conformance harness on the simulated device.
#ifndef H2D_DEVICE_CONFORMANCE_FAKE_HARNESS_H_
#define H2D_DEVICE_CONFORMANCE_FAKE_HARNESS_H_

#include <memory>

#include "h2d/device/conformance/harness.h"
#include "h2d/device/fake/choice.h"

namespace h2d::conformance {

// Asks `choices` (null: the kindest) at the sites of `adversaries`. Complains of every hazard, but
// after `ExpectMisuse`.
std::unique_ptr<Harness> MakeFakeHarness(std::shared_ptr<ChoiceSource> choices,
                                         ChoiceSites adversaries);

}  // namespace h2d::conformance

#endif  // H2D_DEVICE_CONFORMANCE_FAKE_HARNESS_H_
