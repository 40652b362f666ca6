#include "h2d/tests/cuda/baton.h"

#include <gtest/gtest.h>

#include <string>

namespace h2d::testing {
namespace {

TEST(BatonTest, TasksTakeTurnsAndEndedOnesAreLeftOut) {
  Baton baton;
  std::string order;
  const auto task = [&](char name, int steps) {
    return [&, name, steps] {
      for (int i = 0; i < steps; ++i) {
        order += name;
        baton.Pass();
      }
    };
  };
  baton.Run({task('a', 3), task('b', 1), task('c', 2)});
  EXPECT_EQ(order, "abcaca");
}

TEST(BatonTest, OutsideATaskPassingDoesNothing) {
  Baton baton;
  baton.Pass();
}

}  // namespace
}  // namespace h2d::testing
