// Plants each known fault in a stager and demands that random plans report it: the proof that the
// fake's detector and the plan runner's oracle see what they are there to see.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "h2d/tests/support/fake_harness.h"
#include "h2d/tests/support/property.h"
#include "h2d/tests/support/random_runs.h"
#include "h2d/tests/wrong_stagers/little_stager.h"

namespace h2d::testing {
namespace {

constexpr uint64_t kPlansForRightOne = 1000;

// What docs/wrong_stagers.md says of a flaw.
struct Promise {
  uint64_t plans = 0;  // found within so many; not of the environment
  std::string report;  // and the report, a time line in it, holds one of these, apart by " or "
};

// The rows of the document's table: "| flaw | plans | report |".
std::map<std::string, Promise> PromisesOfTheDocument() {
  std::ifstream document("docs/wrong_stagers.md");
  EXPECT_TRUE(document) << "docs/wrong_stagers.md cannot be read";
  std::map<std::string, Promise> promises;
  for (std::string line; std::getline(document, line);) {
    std::vector<std::string> cells;
    for (size_t at = line.find("| "); at != std::string::npos;) {
      const size_t end = line.find(" |", at + 2);
      if (end == std::string::npos) break;
      cells.push_back(line.substr(at + 2, end - at - 2));
      at = line.find("| ", end + 1);
    }
    if (cells.size() != 3) continue;
    const uint64_t plans = std::strtoull(cells[1].c_str(), nullptr, 10);
    if (plans != 0) promises[cells[0]] = {plans, cells[2]};
  }
  return promises;
}

bool HoldsOneOf(const std::string& text, std::string_view phrases) {
  while (true) {
    const size_t end = phrases.find(" or ");
    if (text.find(phrases.substr(0, end)) != std::string::npos) return true;
    if (end == std::string_view::npos) return false;
    phrases.remove_prefix(end + 4);
  }
}

PlanCheck On(const StagerFactory& stager) {
  return [stager](const Plan& plan, bool keep_trace) {
    return RunPlan(plan, *MakeFakeHarness(plan, {.keep_trace = keep_trace}), stager);
  };
}

TEST(LittleStager, WithoutAFlawPassesEveryPlan) {
  const PropertyReport report =
      CheckPlans("little stager", WithoutSteps(ProfileWith({{OpKind::kFault, 1}})),
                 On(LittleStagerWith(Flaw::kNone)), RunsFromEnvironment(kPlansForRightOne));
  std::cout << ToString(report) << "\n";
  EXPECT_EQ(report.failure, "");
}

class WrongStager : public ::testing::TestWithParam<uint32_t> {};

TEST_P(WrongStager, IsReported) {
  const auto flaw = static_cast<Flaw>(GetParam());
  const Promise promise = PromisesOfTheDocument()[std::string(ToString(flaw))];
  ASSERT_NE(promise.plans, 0U) << "the document has no row for: " << ToString(flaw);
  PlanProfile profile = WithoutSteps(ProfileWith({{OpKind::kFault, 2}, {OpKind::kBadCall, 1}}));
  profile.shrink = false;  // that it fails is enough here
  const PropertyReport report =
      CheckPlans(ToString(flaw), profile, On(LittleStagerWith(flaw)), promise.plans);
  EXPECT_NE(report.failure, "") << ToString(flaw) << " passed " << report.plans << " plans";
  EXPECT_TRUE(HoldsOneOf(report.failure, promise.report)) << report.failure;
  std::cout << ToString(flaw) << ": reported by plan " << report.plans_until_failure << ": "
            << report.failure.substr(0, report.failure.find('\n')) << "\n";
}

TEST(WrongStagers, TheDocumentListsEachFlawAndNoOther) {
  std::set<std::string> flaws;
  for (uint32_t i = 1; i < kFlaws; ++i) flaws.emplace(ToString(static_cast<Flaw>(i)));
  std::set<std::string> listed;
  for (const auto& [flaw, promise] : PromisesOfTheDocument()) listed.insert(flaw);
  EXPECT_EQ(listed, flaws);
  EXPECT_GE(flaws.size(), 25U);
}

INSTANTIATE_TEST_SUITE_P(EachFlaw, WrongStager, ::testing::Range(1U, kFlaws));

}  // namespace
}  // namespace h2d::testing
