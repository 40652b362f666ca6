#include "h2d/tests/support/step_oracle.h"

#include <gtest/gtest.h>

#include <utility>

#include "h2d/tests/support/byte_model.h"

namespace h2d::testing {
namespace {

TEST(ByteModel, AWriteThatMayHaveFailedLeavesEitherByteUntilTheNextThatDidNot) {
  ByteModel model({1, 2});
  model.MayWrite(0, Bytes{5, 2});
  EXPECT_FALSE(model.FirstWrong({5, 2}).has_value());
  EXPECT_FALSE(model.FirstWrong({1, 2}).has_value());
  EXPECT_EQ(model.FirstWrong({1, 5}), 1U);
  EXPECT_FALSE(model.Must(0, 1));
  EXPECT_TRUE(model.Must(1, 2));
  model.Write(0, Bytes{7});
  EXPECT_EQ(model.FirstWrong({1, 2}), 0U);
  EXPECT_TRUE(model.Must(0, 7));
}

class StepOracleTest : public ::testing::Test {
 protected:
  // One padded field of two rows, one field that the device writes.
  static StepLayout Layout() {
    StepLayout::Builder builder;
    builder.AddRows<uint8_t>("rows", 2, 4, {.pad = uint8_t{9}});
    builder.Add<uint8_t>("state", 2, {.device_written = true});
    return *std::move(builder).Build();
  }
  StepOracle oracle_{Layout()};
};

TEST_F(StepOracleTest, EqualValuesMustNotTravelOnceTheyAreKnown) {
  oracle_.SetRow(0, 0, {1, 2});
  EXPECT_TRUE(oracle_.must_travel());
  oracle_.Sent();
  oracle_.SetRow(0, 0, {1, 2});
  EXPECT_TRUE(oracle_.must_skip());
  EXPECT_EQ(oracle_.asked_bytes(), 4U);
  oracle_.AppendToRow(0, 0, {3});
  EXPECT_TRUE(oracle_.must_travel());
  EXPECT_EQ(oracle_.RowBytes(0, 0), (Bytes{1, 2, 3, 9}));
  EXPECT_EQ(oracle_.RowCount(0, 0), 3U);
}

TEST_F(StepOracleTest, OfARowThatIsKnownInPartEitherAnswerIsRight) {
  oracle_.SetAt(0, 0, 1, {1});
  oracle_.Sent();
  oracle_.SetAt(0, 0, 2, {0});
  EXPECT_FALSE(oracle_.must_travel());
  EXPECT_FALSE(oracle_.must_skip());
}

TEST_F(StepOracleTest, ForgettingMakesWhatWasAskedTravel) {
  oracle_.SetRow(0, 0, {1});
  oracle_.Sent();
  oracle_.SetRow(0, 0, {1});
  oracle_.Forget(0);
  EXPECT_TRUE(oracle_.must_travel());
  EXPECT_EQ(oracle_.Knows(0), false);
}

TEST_F(StepOracleTest, WhatTheDeviceWritesTravelsWheneverItIsSet) {
  oracle_.Set(1, {0, 0});
  oracle_.Sent();
  oracle_.Set(1, {0, 0});
  EXPECT_TRUE(oracle_.must_travel());
  EXPECT_EQ(oracle_.Knows(1), false);
}

TEST_F(StepOracleTest, RowsMoveWithTheirCountsAndTheirPadding) {
  oracle_.SetRow(0, 0, {1, 2});
  oracle_.SetRow(0, 1, {3});
  oracle_.SwapRows(0, 0, 1);
  EXPECT_EQ(oracle_.RowBytes(0, 0), (Bytes{3, 9, 9, 9}));
  EXPECT_EQ(oracle_.RowCount(0, 1), 2U);
  oracle_.MoveRow(0, 1, 0);
  EXPECT_EQ(oracle_.RowBytes(0, 0), (Bytes{1, 2, 9, 9}));
  EXPECT_EQ(oracle_.RowCount(0, 1), 0U);
}

}  // namespace
}  // namespace h2d::testing
