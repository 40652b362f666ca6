#include "h2d/device/fake/choice.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <utility>
#include <vector>

namespace h2d {
namespace {

constexpr ChoiceSite kSite = ChoiceSite::kLatency;

std::vector<uint32_t> Draw(ChoiceSource& source, uint64_t operation, int count, uint32_t n) {
  std::vector<uint32_t> answers;
  for (int i = 0; i < count; ++i) answers.push_back(source.Choose(operation, kSite, n));
  return answers;
}

TEST(Choices, AnswersAreBelowTheirBoundAndOneAnswerNeedsNoDraw) {
  ByteChoices bytes({{7, 255}});
  EXPECT_EQ(bytes.Choose(0, kSite, 1), 0U);
  EXPECT_EQ(bytes.Choose(0, kSite, 0), 0U);
  EXPECT_EQ(bytes.Choose(0, kSite, 4), 3U);  // 7 % 4: nothing was drawn before
  EXPECT_EQ(bytes.Choose(0, kSite, 2), 1U);
}

TEST(Choices, AbsentBytesAreTheKindestChoice) {
  ByteChoices bytes({{1}, {}});
  EXPECT_EQ(Draw(bytes, 0, 3, 2), (std::vector<uint32_t>{1, 0, 0}));
  EXPECT_EQ(Draw(bytes, 1, 2, 2), (std::vector<uint32_t>{0, 0}));
  EXPECT_EQ(Draw(bytes, 99, 1, 2), (std::vector<uint32_t>{0}));
}

TEST(Choices, AnOperationsBytesAreItsOwn) {
  ByteChoices with({{3}, {5}, {6}});
  ByteChoices without({{3}, {}, {6}});
  Draw(with, 1, 4, 8);
  EXPECT_EQ(with.Choose(2, kSite, 8), without.Choose(2, kSite, 8));
}

TEST(Choices, AHashedChoiceDependsOnItsPointAlone) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    HashChoices one(seed);
    HashChoices other(seed);
    for (uint64_t operation = 0; operation < 20; operation += 2) Draw(other, operation, 3, 5);
    EXPECT_EQ(Draw(one, 7, 5, 6), Draw(other, 7, 5, 6));
  }
}

TEST(Choices, SeedsDifferInHowOftenASiteIsUnkind) {
  std::set<int> unkind_of_100;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    HashChoices source(seed);
    int unkind = 0;
    for (uint64_t operation = 0; operation < 100; ++operation) {
      unkind += source.Choose(operation, kSite, 1000) != 0 ? 1 : 0;
    }
    unkind_of_100.insert(unkind < 5 ? 0 : unkind < 30 ? 1 : unkind < 80 ? 2 : 3);
  }
  EXPECT_EQ(unkind_of_100.size(), 4U);  // never, seldom, often, always
}

TEST(Choices, ARecordingReplaysAndMayBeEdited) {
  RecordingChoices recording(std::make_shared<HashChoices>(11));
  std::vector<uint32_t> before;
  for (uint64_t operation = 0; operation < 30; ++operation) {
    for (const uint32_t answer : Draw(recording, operation, 2, 4)) before.push_back(answer);
  }
  EXPECT_EQ(recording.choices().size(), 60U);
  ScriptedChoices replay(recording.Script());
  std::vector<uint32_t> after;
  for (uint64_t operation = 0; operation < 30; ++operation) {
    for (const uint32_t answer : Draw(replay, operation, 2, 4)) after.push_back(answer);
  }
  EXPECT_EQ(before, after);
  ScriptedChoices edited({{{4, kSite, 1}, 3}});
  EXPECT_EQ(Draw(edited, 4, 3, 4), (std::vector<uint32_t>{0, 3, 0}));
}

TEST(Choices, SitesAreSwitchedOneByOne) {
  constexpr ChoiceSites kSites = ChoiceSites::All().Without(ChoiceSite::kTask);
  EXPECT_FALSE(kSites.contains(ChoiceSite::kTask));
  EXPECT_TRUE(kSites.contains(ChoiceSite::kSourceRead));
  EXPECT_TRUE(ChoiceSites::None().With(ChoiceSite::kTask).contains(ChoiceSite::kTask));
  EXPECT_EQ(ToString(ChoiceSite::kTask), "task");
}

}  // namespace
}  // namespace h2d
