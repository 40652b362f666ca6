#include "h2d/tests/support/property.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace h2d::testing {
namespace {

// A property that fails for plans with a read after a record, whatever else they do.
RunResult FailAtReadAfterRecord(const Plan& plan, bool keep_trace) {
  const auto is = [](OpKind kind) { return [kind](const PlanOp& op) { return op.kind == kind; }; };
  const auto record = std::find_if(plan.ops.begin(), plan.ops.end(), is(OpKind::kRecord));
  RunResult result;
  if (std::any_of(record, plan.ops.end(), is(OpKind::kRead))) {
    result.failure = "a read came after a record";
    if (keep_trace) result.timeline = "the time line";
  }
  return result;
}

TEST(Property, AFailureShrinksToTheOperationsThatMatterAndItsTokenReplaysIt) {
  const PropertyReport report =
      CheckPlans("shrinking", GeneralProfile(), FailAtReadAfterRecord, 1000);
  EXPECT_NE(report.failure.find("a read came after a record"), std::string::npos);
  EXPECT_NE(report.failure.find("the time line"), std::string::npos);
  EXPECT_NE(report.failure.find("H2D_REPLAY=" + report.token), std::string::npos);
  EXPECT_GT(report.plans_until_failure, 0U);

  const auto bytes = PlanFromToken(report.token);
  ASSERT_TRUE(bytes.has_value());
  const Plan minimal = DecodePlan(*bytes);
  EXPECT_FALSE(FailAtReadAfterRecord(minimal, false).ok());
  EXPECT_EQ(minimal.ops.size(), 2U);
  EXPECT_EQ(minimal.header, PlanHeader());
  for (const PlanOp& op : minimal.ops) EXPECT_EQ(op.choices, PlanOp().choices);
}

TEST(Property, ThatHoldsReportsWhatItRan) {
  const PropertyReport report = CheckPlans(
      "holds", GeneralProfile(), [](const Plan&, bool) { return RunResult(); }, 200);
  EXPECT_EQ(report.failure, "");
  EXPECT_EQ(report.plans, 200U);
  EXPECT_GE(report.median_ops, 30U);
  EXPECT_EQ(report.fewest_streams, 3U);
  EXPECT_EQ(report.fewest_tasks, 2U);
}

TEST(Property, AFailureThatDoesNotComeAgainIsReportedAsSuch) {
  bool first = true;
  const PropertyReport report = CheckPlans(
      "flaky", GeneralProfile(),
      [&first](const Plan&, bool) {
        RunResult result;
        if (first) result.failure = "once";
        first = false;
        return result;
      },
      10);
  EXPECT_NE(report.failure.find("I11"), std::string::npos);
}

}  // namespace
}  // namespace h2d::testing
