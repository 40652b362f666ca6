// The library's own stager, to be run by plans.
#ifndef H2D_TESTS_SUPPORT_REAL_STAGER_H_
#define H2D_TESTS_SUPPORT_REAL_STAGER_H_

#include <cstddef>
#include <memory>

#include "h2d/tests/support/stager_under_test.h"

namespace h2d::testing {

// A `StagerFactory`.
Expected<std::unique_ptr<StagerUnderTest>> MakeRealStager(std::shared_ptr<Device> device,
                                                          const StagerOptions& options,
                                                          size_t mirrors);

}  // namespace h2d::testing

#endif  // H2D_TESTS_SUPPORT_REAL_STAGER_H_
