#include "h2d/tests/support/region_model.h"

#include <gtest/gtest.h>

namespace h2d::testing {
namespace {

TEST(RegionModel, CallsThatDidNotOverlapTakeEffectInTheirOrder) {
  RegionModel model({0, 0});
  model.Write({.offset = 0, .bytes = {1, 1}});
  model.Write({.offset = 1, .bytes = {2}});
  EXPECT_EQ(model.Images(), (std::set<Bytes>{{1, 2}}));
}

TEST(RegionModel, CallsThatOverlappedMayHaveHadAnyOrder) {
  RegionModel model({0, 0});
  const size_t first = model.Begin();
  const size_t second = model.Begin();
  model.End(second, WriteEffect{.bytes = {2, 2}});
  model.End(first, WriteEffect{.bytes = {1}});
  EXPECT_EQ(model.Images(), (std::set<Bytes>{{2, 2}, {1, 2}}));
}

TEST(RegionModel, ACallThatHadReturnedComesBeforeOneThatBeganLater) {
  RegionModel model({0});
  const size_t slow = model.Begin();
  model.End(model.Begin(), WriteEffect{.bytes = {1}});
  model.End(model.Begin(), WriteEffect{.bytes = {2}});
  model.End(slow, WriteEffect{.bytes = {3}});
  // 3 anywhere, but 1 before 2.
  EXPECT_EQ(model.Images(), (std::set<Bytes>{{2}, {3}}));
}

TEST(RegionModel, AFailedCallMayHaveWrittenOrNot) {
  RegionModel model({0});
  model.Write({.bytes = {1}, .maybe = true});
  EXPECT_EQ(model.Images(), (std::set<Bytes>{{0}, {1}}));
  model.Write({.bytes = {2}});
  EXPECT_EQ(model.Images(), (std::set<Bytes>{{2}}));
}

TEST(RegionModel, ACallThatDidNothingLeavesNoTrace) {
  RegionModel model({5});
  model.End(model.Begin(), std::nullopt);
  EXPECT_TRUE(model.at_rest());
  EXPECT_EQ(model.Images(), (std::set<Bytes>{{5}}));
}

}  // namespace
}  // namespace h2d::testing
