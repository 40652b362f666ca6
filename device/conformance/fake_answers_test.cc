// The fake can produce every answer that the documents allow, and no other: what the suite accepts
// from hardware is what the simulated device may do to its users.
#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "gtest/gtest.h"
#include "h2d/device/conformance/answers.h"
#include "h2d/device/conformance/fake_harness.h"

namespace h2d::conformance {
namespace {

TEST(FakeAnswersTest, EveryAllowedAnswerIsGivenAndNoOther) {
  constexpr uint64_t kMostSeeds = 200;
  for (const Question& question : Questions()) {
    std::set<std::string> seen;
    for (uint64_t seed = 0; seed < kMostSeeds && seen != question.allowed; ++seed) {
      const std::unique_ptr<Harness> harness =
          MakeFakeHarness(std::make_shared<HashChoices>(seed), ChoiceSites::Live());
      const Expected<std::string> answer = question.ask(*harness);
      ASSERT_TRUE(answer.has_value()) << answer.error().ToString();
      ASSERT_TRUE(question.allowed.contains(*answer))
          << "seed " << seed << ": " << question.text << " " << *answer;
      seen.insert(*answer);
    }
    EXPECT_EQ(seen, question.allowed) << question.text;
  }
}

}  // namespace
}  // namespace h2d::conformance
