// Prints the smallest failure of each wrong stager, as docs/minimal_failures.md holds them.
#include <cstdio>

#include "h2d/tests/minimal_failures/listing_text.h"

int main() {
  using namespace h2d::testing;
  std::printf("%s", ListingIntroduction().c_str());
  for (uint32_t i = 1; i < kFlaws; ++i) {
    const auto flaw = static_cast<Flaw>(i);
    std::printf("%s", ListingOf(flaw, FindMinimalFailure(flaw)).c_str());
  }
}
