// What CUDA may answer in several ways.
#include "h2d/device/conformance/answers.h"

#include <string>

#include "h2d/device/conformance/conformance_test.h"

namespace h2d::conformance {
namespace {

using Answers = ConformanceTest;

TEST_F(Answers, AreMembersOfTheAllowedSets) {
  harness().ExpectMisuse();
  for (const Question& question : Questions()) {
    const std::string answer = Must(question.ask(harness()));
    AnswersSeen()[question.text].insert(answer);
    EXPECT_TRUE(question.allowed.contains(answer)) << question.text << " " << answer;
  }
}

}  // namespace
}  // namespace h2d::conformance
