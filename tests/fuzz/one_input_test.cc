// What the fuzzer runs, in every build: plans from bytes that no generator has chosen.
#include "h2d/tests/fuzz/one_input.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "h2d/device/fake/choice.h"
#include "h2d/tests/support/plan.h"
#include "h2d/tests/support/random_runs.h"

namespace h2d::testing {
namespace {

TEST(OneInput, PlansFromAnyBytesHold) {
  const uint64_t inputs = RunsFromEnvironment(200);
  uint64_t state = 0;
  for (uint64_t i = 0; i < inputs; ++i) {
    std::vector<uint8_t> bytes(MixBits(i + 1) % (kPlanHeaderBytes + 60 * kPlanOpBytes));
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(MixBits(++state) >> 24);
    ASSERT_EQ(RunOneInput(bytes), "") << "input " << i;
  }
}

TEST(OneInput, FewBytesAndNoneAreAPlan) {
  for (const size_t size : {0U, 1U, 16U, 17U}) {
    EXPECT_EQ(RunOneInput(std::vector<uint8_t>(size, 0xff)), "") << size;
  }
}

}  // namespace
}  // namespace h2d::testing
