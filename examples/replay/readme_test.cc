// What examples/README.md shows is what the program prints.
#include <gtest/gtest.h>

#include "h2d/docs/shown_output.h"
#include "h2d/examples/replay/run_program.h"

namespace h2d::replay {
namespace {

TEST(ReadmeTest, TheComparisonIsWhatIsPrinted) {
  h2d::testing::ExpectShows("examples/README.md", "separate-mirrored",
                            RunProgram("--compare --requests=100").text);
}

}  // namespace
}  // namespace h2d::replay
