// Runs the suite on one backend: all that a backend's main function calls.
#ifndef H2D_DEVICE_CONFORMANCE_RUN_H_
#define H2D_DEVICE_CONFORMANCE_RUN_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "h2d/device/conformance/exclusions.h"
#include "h2d/device/conformance/harness.h"
#include "h2d/device/error.h"

namespace h2d::conformance {

struct Backend {
  std::string name;
  std::function<Expected<std::unique_ptr<Harness>>()> make_harness;  // one for each test
  std::vector<Exclusion> exclusions;
};

// Takes GoogleTest's flags. Answers what main returns: 0 when each test passed, was skipped, or is
// excluded and failed. Prints for each question with several legal answers which ones it saw.
int RunConformance(int argc, char** argv, Backend backend);

// The backend under test. REQUIRES: `RunConformance` is running.
const Backend& BackendUnderTest();

}  // namespace h2d::conformance

#endif  // H2D_DEVICE_CONFORMANCE_RUN_H_
