// Random strategies: what each finds that the other rarely does.
#include "h2d/device/fake/explore/search.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "h2d/device/fake/choice.h"
#include "h2d/device/fake/explore/priority_choices.h"
#include "h2d/device/fake/fake_device.h"
#include "h2d/device/fake/host_tasks.h"
#include "h2d/device/sync.h"

namespace h2d {
namespace {

std::shared_ptr<ChoiceSource> Swarm(uint64_t seed) { return std::make_shared<HashChoices>(seed); }

std::shared_ptr<ChoiceSource> Priority(uint64_t seed) {
  return std::make_shared<PriorityChoices>(seed, 2, 100);
}

// Two tasks add to a number with a load and a store: an addition is lost when one of them is
// stopped between the two.
std::string LoseAnAddition(const std::shared_ptr<ChoiceSource>& choices) {
  const auto device = FakeDevice::Create({.choices = choices});
  Atomic<int> number(0);
  const auto add = [&] { number.Store(number.Load() + 1); };
  EXPECT_TRUE(RunTasks(*device, {add, add}));
  return number.Load() == 2 ? "" : "an addition was lost";
}

// The last of three tasks has to do 30 steps before either of the others does one.
std::string Overtake(const std::shared_ptr<ChoiceSource>& choices) {
  const auto device = FakeDevice::Create({.choices = choices});
  Atomic<int> started(0);
  bool first = false;
  const auto early = [&] { static_cast<void>(started.FetchAdd(1)); };
  EXPECT_TRUE(RunTasks(*device, {early, early, [&] {
                                   for (int i = 0; i < 30; ++i) {
                                     if (started.Load() != 0) return;
                                   }
                                   first = true;
                                 }}));
  return first ? "the last one was first" : "";
}

TEST(SearchTest, BothStrategiesFindALostAdditionAndTheSeedFindsItAgain) {
  for (const auto& strategy : {Swarm, Priority}) {
    const SearchReport report = SearchSeeds(1, 100, strategy, LoseAnAddition);
    ASSERT_EQ(report.failure, "an addition was lost");
    const SearchReport again = SearchSeeds(report.seed, 1, strategy, LoseAnAddition);
    EXPECT_EQ(again.failure, report.failure);
  }
}

TEST(SearchTest, PrioritiesFindWhatNeedsOneTaskToRunFarAhead) {
  const SearchReport report = SearchSeeds(1, 30, Priority, Overtake);
  EXPECT_EQ(report.failure, "the last one was first") << report.runs;
}

TEST(SearchTest, ASearchThatFindsNothingHasMadeAllItsRuns) {
  const SearchReport report =
      SearchSeeds(5, 20, Swarm, [](const std::shared_ptr<ChoiceSource>&) { return ""; });
  EXPECT_EQ(report.failure, "");
  EXPECT_EQ(report.runs, 20U);
  EXPECT_EQ(report.seed, 24U);
}

}  // namespace
}  // namespace h2d
