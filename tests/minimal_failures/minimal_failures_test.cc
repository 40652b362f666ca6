// Each planted fault shrinks to a plan that a person reads at a glance, and its token is all that
// is needed to see it again.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include "h2d/tests/minimal_failures/listing_text.h"
#include "h2d/tests/minimal_failures/minimal_failure.h"
#include "h2d/tests/support/fake_harness.h"
#include "h2d/tests/support/plan.h"
#include "h2d/tests/support/random_runs.h"
#include "h2d/tests/support/run_plan.h"
#include "h2d/tests/wrong_stagers/little_stager.h"

namespace h2d::testing {
namespace {

constexpr size_t kAtAGlance = 10;  // operations

RunResult RunToken(std::string_view token, Flaw flaw) {
  const auto bytes = PlanFromToken(token);
  EXPECT_TRUE(bytes.has_value()) << token;
  if (!bytes) return {};
  const Plan plan = DecodePlan(*bytes);
  return RunPlan(plan, *MakeFakeHarness(plan, {.keep_trace = true}), LittleStagerWith(flaw));
}

std::string ContentOf(const char* path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

// The document is what `listing` prints: its introduction here, its sections below.
TEST(MinimalFailures, AreIntroducedByTheDocument) {
  EXPECT_EQ(ContentOf("docs/minimal_failures.md").rfind(ListingIntroduction(), 0), 0U);
}

TEST(MinimalFailures, AreShortShownInTheDocumentAndReplayFromTheirTokens) {
  const std::string document = ContentOf("docs/minimal_failures.md");
  // With few plans (a sanitizer's build) one in eight.
  const uint32_t step = RunsFromEnvironment(1000) < 1000 ? 8 : 1;
  for (uint32_t i = 1; i < kFlaws; i += step) {
    const auto flaw = static_cast<Flaw>(i);
    SCOPED_TRACE(ToString(flaw));
    const auto found = FindMinimalFailure(flaw);
    ASSERT_TRUE(found.has_value());
    EXPECT_LE(found->plan.ops.size(), kAtAGlance) << PlanToString(found->plan);
    EXPECT_NE(document.find(ListingOf(flaw, found)), std::string::npos)
        << "bazel run //tests/minimal_failures:listing prints\n"
        << ListingOf(flaw, found);
    const RunResult again = RunToken(found->token, flaw);
    EXPECT_FALSE(again.ok());
    EXPECT_EQ(again.failure, found->result.failure);
    EXPECT_EQ(again.trace_hash, found->result.trace_hash);
    EXPECT_EQ(again.timeline, found->result.timeline);
  }
}

// The literal was the same under g++ and clang, with and without sanitizers. It changes with what
// the simulated device, the runner or the little stager does, and is then committed with that.
TEST(MinimalFailures, AreTheSameRunInEveryBuild) {
  const RunResult result = RunToken(
      "h2d1:"
      "AAIAAAEAAAEBAAAAAAAAAAAAAAEAAAAAAAAAAAECBQIAAAAAAAAAAAAAAAAAAgAAAQIAAQAAAAAAAAAAAAAAAAIAAAAA"
      "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAQEBAQAAAAAAAAAAAckDYw",
      Flaw::kNone);
  EXPECT_TRUE(result.ok()) << result.failure;
  EXPECT_EQ(result.trace_hash, 4606581967591422568U);
}

}  // namespace
}  // namespace h2d::testing
