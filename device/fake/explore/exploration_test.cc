// The exploration against the space of all schedules: what it leaves out is equivalent to what it
// makes, and it makes nothing twice.
#include "h2d/device/fake/explore/exploration.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "h2d/device/fake/choice.h"
#include "h2d/device/fake/explore/explored_choices.h"
#include "h2d/device/fake/explore/watched_device.h"
#include "h2d/device/fake/explore/watched_tasks.h"
#include "h2d/device/fake/fake_device.h"
#include "h2d/device/sync.h"

namespace h2d {
namespace {

constexpr uint32_t kAtomics = 2;

enum class Kind : uint8_t { kLoad, kStore, kAdd, kLocked, kEither };
constexpr uint32_t kKinds = 5;

struct Op {
  Kind kind;
  uint32_t object;
};
using Program = std::vector<std::vector<Op>>;

Program Draw(uint64_t seed) {
  uint64_t state = seed;
  const auto below = [&](uint32_t n) {
    state = MixBits(state + 0x9e3779b97f4a7c15ULL);
    return static_cast<uint32_t>(state >> 33) % n;
  };
  Program program(2 + below(2));
  for (auto& task : program) {
    task.resize(program.size() == 2 ? 2 : 1);
    for (Op& op : task) op = {static_cast<Kind>(below(kKinds)), below(kAtomics)};
  }
  return program;
}

// One run of a program, and who touched each object in which order. Two runs with equal orders are
// the same but for steps that commute: loads between two stores are put in order of their tasks.
class ProgramRun {
 public:
  explicit ProgramRun(Exploration& exploration) : exploration_(exploration) {}

  std::string Run(const Program& program) {
    const auto device =
        FakeDevice::Create(OptionsToExplore(std::make_shared<ExploredChoices>(exploration_)));
    std::vector<std::function<void()>> tasks;
    for (uint32_t task = 0; task < program.size(); ++task) {
      tasks.push_back([this, task, &ops = program[task]] {
        for (const Op& op : ops) Do(task, op);
      });
    }
    EXPECT_TRUE(RunWatchedTasks(*device, exploration_, std::move(tasks)));
    std::string seen;
    for (auto& [order, loads] : orders_) seen += order + Sorted(loads) + "|";
    return seen + answers_[0] + "|" + answers_[1] + "|" + answers_[2];
  }

 private:
  struct Order {
    std::string order;
    std::string loads;  // since the last store
  };

  static std::string Sorted(std::string loads) {
    std::sort(loads.begin(), loads.end());
    return loads;
  }
  void Touched(size_t object, uint32_t task, bool only_loads) {
    auto& [order, loads] = orders_[object];
    const char name = static_cast<char>('a' + task);
    if (only_loads) {
      loads += name;
      return;
    }
    order += Sorted(std::exchange(loads, {}));
    order += static_cast<char>('A' + task);
  }

  void Do(uint32_t task, const Op& op) {
    switch (op.kind) {
      case Kind::kLoad:
        static_cast<void>(atomics_[op.object].Load());
        return Touched(op.object, task, true);
      case Kind::kStore:
        atomics_[op.object].Store(1);
        return Touched(op.object, task, false);
      case Kind::kAdd:
        static_cast<void>(atomics_[op.object].FetchAdd(1));
        return Touched(op.object, task, false);
      case Kind::kLocked: {
        const MutexLock lock(mutex_);
        Touched(kAtomics, task, false);
        static_cast<void>(atomics_[op.object].FetchAdd(1));
        return Touched(op.object, task, false);
      }
      case Kind::kEither: {
        const uint32_t answer = exploration_.Decide(2);
        answers_[task] += static_cast<char>('0' + answer);
        atomics_[answer].Store(1);
        return Touched(answer, task, false);
      }
    }
  }

  Exploration& exploration_;
  std::array<Atomic<int>, kAtomics> atomics_;
  Mutex mutex_;
  std::array<Order, kAtomics + 1> orders_;
  std::array<std::string, 3> answers_;
};

std::multiset<std::string> AllRuns(const Program& program, bool reduce, uint64_t& redundant) {
  Exploration exploration({.reduce = reduce});
  std::multiset<std::string> seen;
  do {
    std::string orders = ProgramRun(exploration).Run(program);
    if (!exploration.redundant()) seen.insert(std::move(orders));
  } while (exploration.EndRun());
  EXPECT_TRUE(exploration.complete()) << exploration.ToString();
  EXPECT_EQ(seen.size(), exploration.runs());
  redundant += exploration.redundant_runs();
  return seen;
}

TEST(ExplorationTest, TheReducedSpaceHasOneRunOfEachKindInTheSpaceOfAllSchedules) {
  uint64_t all_runs = 0;
  uint64_t reduced_runs = 0;
  uint64_t redundant = 0;
  for (uint64_t seed = 0; seed < 24; ++seed) {
    const Program program = Draw(seed);
    const std::multiset<std::string> all = AllRuns(program, false, redundant);
    const std::multiset<std::string> reduced = AllRuns(program, true, redundant);
    const std::set<std::string> kinds(all.begin(), all.end());
    ASSERT_EQ(std::set<std::string>(reduced.begin(), reduced.end()), kinds) << "seed " << seed;
    ASSERT_EQ(reduced.size(), kinds.size()) << "a kind was run twice, seed " << seed;
    all_runs += all.size();
    reduced_runs += reduced.size();
  }
  std::cout << all_runs << " schedules, " << reduced_runs << " kinds of them, " << redundant
            << " redundant runs\n";
  EXPECT_LT(reduced_runs + redundant, all_runs / 4);
}

TEST(ExplorationTest, EveryAnswerToEveryQuestionIsTried) {
  Exploration exploration;
  std::set<std::pair<uint32_t, uint32_t>> seen;
  do {
    const uint32_t first = exploration.Decide(3);
    seen.insert({first, first == 1 ? exploration.Decide(4) : 0});
  } while (exploration.EndRun());
  EXPECT_EQ(seen.size(), 6U);
  EXPECT_EQ(exploration.runs(), 6U);
  EXPECT_EQ(exploration.ToString(), "6 runs through 2 states: complete");
}

TEST(ExplorationTest, ABoundIsNotCalledComplete) {
  Exploration exploration({.max_runs = 5});
  do {
    static_cast<void>(exploration.Decide(9));
  } while (exploration.EndRun());
  EXPECT_FALSE(exploration.complete());
  EXPECT_EQ(exploration.ToString(), "5 runs through 1 states: not complete: the bound of 5 runs");
}

TEST(ExplorationTest, ARunThatAsksOtherQuestionsThanBeforeIsFoundOut) {
  Exploration exploration;
  uint32_t run = 0;
  do {
    static_cast<void>(exploration.Decide(2 + run++));
    static_cast<void>(exploration.Decide(2));
  } while (exploration.EndRun());
  EXPECT_TRUE(exploration.diverged());
  EXPECT_FALSE(exploration.complete());
}

// Every answer of a query, and every event that a wait may answer.
TEST(ExplorationTest, AnswersOfQueriesAndWaitsAreExplored) {
  Exploration exploration;
  std::set<std::string> seen;
  do {
    const auto choices = std::make_shared<ExploredChoices>(exploration);
    const auto fake = FakeDevice::Create(OptionsToExplore(choices));
    const auto device = WatchedDevice::Create(fake, exploration, choices);
    const Stream stream = fake->NewStream();
    Event first = *device->CreateEvent();
    Event second = *device->CreateEvent();
    ASSERT_TRUE(device->Record(first, stream));
    ASSERT_TRUE(device->Record(second, stream));
    std::string answers = *device->Query(first) == EventState::kComplete ? "complete " : "pending ";
    const Event* const both[] = {&first, &second};
    answers += std::to_string(**device->WaitAny(both, {.timeout = std::chrono::hours(1)}));
    seen.insert(answers);
  } while (exploration.EndRun());
  EXPECT_EQ(seen, (std::set<std::string>{"complete 0", "complete 1", "pending 0", "pending 1"}));
  EXPECT_EQ(exploration.runs(), 4U);
}

// A task that waits is not offered, and its wakeup is an order that cannot be reversed.
TEST(ExplorationTest, AWaitForAWakeupIsExploredOnBothSidesOfIt) {
  Exploration exploration;
  std::set<bool> waited;
  do {
    const auto choices = std::make_shared<ExploredChoices>(exploration);
    const auto fake = FakeDevice::Create(OptionsToExplore(choices));
    const auto device = WatchedDevice::Create(fake, exploration, choices);
    Wakeup wakeup;
    bool notified = false;
    ASSERT_TRUE(
        RunWatchedTasks(*fake, exploration,
                        {[&] {
                           const uint64_t seen = wakeup.Epoch();
                           if (!exploration.redundant()) waited.insert(seen == 0);
                           if (seen != 0) return;
                           ASSERT_TRUE(device->WaitAny({}, {std::chrono::hours(1), &wakeup, seen}));
                           EXPECT_TRUE(notified);
                         },
                         [&] {
                           notified = true;
                           wakeup.Notify();
                         }}));
    EXPECT_LT(fake->Now(), std::chrono::hours(1));
  } while (exploration.EndRun());
  EXPECT_TRUE(exploration.complete()) << exploration.ToString();
  EXPECT_EQ(waited, (std::set<bool>{false, true}));
}

}  // namespace
}  // namespace h2d
