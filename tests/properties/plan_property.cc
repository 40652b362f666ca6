#include "h2d/tests/properties/plan_property.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <iostream>

#include "h2d/device/faulty/fault.h"
#include "h2d/tests/support/fake_harness.h"
#include "h2d/tests/support/random_runs.h"
#include "h2d/tests/support/real_stager.h"

namespace h2d::testing {
namespace {

using internal::kMarkCount;

// How many plans reached each mark.
class MarkShares {
 public:
  MarkShares() {
    internal::EnableMarks(true);
    internal::ResetMarks();
  }
  ~MarkShares() { internal::EnableMarks(false); }

  void AddPlan(const RunCounts& counts) {
    for (size_t i = 0; i < kPlanMarkCount; ++i) {
      if (counts.marks[i] != 0) ++of_plans_[i];
    }
    for (size_t i = 0; i < kMarkCount; ++i) {
      const uint64_t hits = internal::MarkHits(static_cast<Mark>(i));
      if (hits != before_[i]) ++plans_[i];
      before_[i] = hits;
    }
    ++all_;
  }

  uint64_t PlansThatReached(Mark mark) const { return plans_[static_cast<size_t>(mark)]; }
  uint64_t PlansThatReached(PlanMark mark) const { return of_plans_[static_cast<size_t>(mark)]; }

  std::string ToString() const {
    std::string text = "  plans of a thousand that reached:";
    for (size_t i = 0; i < kMarkCount; ++i) text += Share(static_cast<Mark>(i));
    text += "\n  and did:";
    for (size_t i = 0; i < kPlanMarkCount; ++i) text += Share(static_cast<PlanMark>(i));
    return text;
  }

 private:
  template <class AnyMark>
  std::string Share(AnyMark mark) const {
    return (mark == AnyMark{} ? " " : ", ") + std::string(Name(mark)) + " " +
           std::to_string(all_ == 0 ? 0 : PlansThatReached(mark) * 1000 / all_);
  }

  std::array<uint64_t, kMarkCount> before_ = {};
  std::array<uint64_t, kMarkCount> plans_ = {};
  std::array<uint64_t, kPlanMarkCount> of_plans_ = {};
  uint64_t all_ = 0;
};

}  // namespace

PropertyReport ExpectPlansHold(std::string_view name, const PlanProfile& profile,
                               const std::vector<Mark>& marks, uint64_t per_mille,
                               const std::vector<PlanMark>& of_plans) {
  MarkShares shares;
  const PlanCheck check = [&](const Plan& plan, bool keep_trace) {
    RunResult result =
        RunPlan(plan, *MakeFakeHarness(plan, {.keep_trace = keep_trace}), MakeRealStager);
    shares.AddPlan(result.counts);
    return result;
  };
  PropertyReport report = CheckPlans(name, profile, check, RunsFromEnvironment(kPlansOfProperty));
  std::cout << name << ": " << ToString(report) << "\n" << shares.ToString() << "\n";
  EXPECT_EQ(report.failure, "");
  // With fewer plans (a sanitizer's build, a replay) not every state can be asked for.
  if (!report.failure.empty() || report.plans < kPlansOfProperty) return report;
  EXPECT_GE(report.median_ops, 30U);
  EXPECT_GE(report.fewest_streams, 3U);
  EXPECT_GE(report.fewest_tasks, 2U);
  const auto expect = [&](auto mark) {
    const uint64_t plans = shares.PlansThatReached(mark);
    EXPECT_GT(plans, 0U) << "no plan reached: " << Name(mark);
    EXPECT_GE(plans * 1000, per_mille * report.plans)
        << plans << " of " << report.plans << " plans reached: " << Name(mark);
  };
  std::for_each(marks.begin(), marks.end(), expect);
  std::for_each(of_plans.begin(), of_plans.end(), expect);
  return report;
}

void FailNextRecordOften(PlanOp& op) {
  if (op.kind != OpKind::kFault || op.extra % 4 == 0) return;
  const auto record = std::find(kCallKinds.begin(), kCallKinds.end(), CallKind::kRecord);
  op.target = static_cast<uint8_t>(record - kCallKinds.begin());
  op.length = 0;
  op.variant &= 0xfe;  // once
}

}  // namespace h2d::testing
