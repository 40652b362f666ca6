// docs/minimal_failures.md, section by section.
#ifndef H2D_TESTS_MINIMAL_FAILURES_LISTING_TEXT_H_
#define H2D_TESTS_MINIMAL_FAILURES_LISTING_TEXT_H_

#include <optional>
#include <string>

#include "h2d/tests/minimal_failures/minimal_failure.h"

namespace h2d::testing {

std::string ListingIntroduction();
std::string ListingOf(Flaw flaw, const std::optional<MinimalFailure>& found);

}  // namespace h2d::testing

#endif  // H2D_TESTS_MINIMAL_FAILURES_LISTING_TEXT_H_
