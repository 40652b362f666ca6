// Which tests a backend is not expected to pass, and why.
#ifndef H2D_DEVICE_CONFORMANCE_EXCLUSIONS_H_
#define H2D_DEVICE_CONFORMANCE_EXCLUSIONS_H_

#include <string>
#include <string_view>
#include <vector>

namespace h2d::conformance {

// Excluded tests are run all the same: one that passes fails the run, because its entry is out of
// date and hides what could be promised.
struct Exclusion {
  std::string test;    // "Suite.Name", or "Suite.*" for all of a suite
  std::string reason;  // a sentence: what the backend cannot do
};

// The entry for the test `full_name`, or null.
const Exclusion* FindExclusion(const std::vector<Exclusion>& exclusions,
                               std::string_view full_name);

}  // namespace h2d::conformance

#endif  // H2D_DEVICE_CONFORMANCE_EXCLUSIONS_H_
