#include "h2d/examples/replay/step_tensors.h"

#include <gtest/gtest.h>

#include <vector>

namespace h2d::replay {
namespace {

template <class T>
std::vector<T> Values(const StepTensors& tensors, TensorKind kind) {
  const auto view = std::get<TensorValues<T>>(tensors.View(kind));
  return {view.values.begin(), view.values.end()};
}

template <class T>
T Pad(const StepTensors& tensors, TensorKind kind) {
  return std::get<TensorValues<T>>(tensors.View(kind)).pad;
}

// Request 7 prefills tokens 2 to 5, request 3 decodes token 4, request 9 waits for its turn.
class StepTensorsTest : public testing::Test {
 protected:
  StepTensorsTest() {
    plan_.rows = rows_;
    plan_.tokens = 5;
    tensors_.Fill(plan_);
  }

  const std::vector<int32_t> blocks7_ = {5, 8, 1};
  const std::vector<int32_t> blocks3_ = {0, 2, 9};
  const std::vector<int32_t> blocks9_ = {6};
  const std::vector<RowPlan> rows_ = {
      RowPlan{.request = 7, .computed = 2, .scheduled = 4, .blocks = blocks7_},
      RowPlan{.request = 3, .computed = 4, .scheduled = 1, .blocks = blocks3_},
      RowPlan{.request = 9, .computed = 1, .scheduled = 0, .blocks = blocks9_}};
  StepPlan plan_;
  StepTensors tensors_{/*block_size=*/2, /*table_width=*/4, /*seed=*/1};
};

TEST_F(StepTensorsTest, TokensLieOneRowAfterAnother) {
  EXPECT_EQ(Values<int64_t>(tensors_, TensorKind::kPositions),
            (std::vector<int64_t>{2, 3, 4, 5, 4}));
  EXPECT_EQ(Values<int32_t>(tensors_, TensorKind::kTokenIds).size(), 5U);
  EXPECT_EQ(Values<int32_t>(tensors_, TensorKind::kQueryStarts),
            (std::vector<int32_t>{0, 4, 5, 5}));
  EXPECT_EQ(Values<int32_t>(tensors_, TensorKind::kSeqLens), (std::vector<int32_t>{6, 5, 1}));
}

TEST_F(StepTensorsTest, ATokensSlotIsItsPlaceInItsBlock) {
  EXPECT_EQ(Values<int64_t>(tensors_, TensorKind::kSlotMapping),
            (std::vector<int64_t>{16, 17, 2, 3, 18}));
}

TEST_F(StepTensorsTest, ARowOfTheBlockTableIsFilledUpWithNoBlock) {
  EXPECT_EQ(Values<int32_t>(tensors_, TensorKind::kBlockTables),
            (std::vector<int32_t>{5, 8, 1, -1, 0, 2, 9, -1, 6, -1, -1, -1}));
}

TEST_F(StepTensorsTest, ARowHasItsRequestsBlocksAndNoneBeyondTheBatch) {
  const auto blocks = [this](uint64_t row) {
    const std::span<const int32_t> of_row = tensors_.BlocksOf(row);
    return std::vector<int32_t>(of_row.begin(), of_row.end());
  };
  EXPECT_EQ(blocks(0), blocks7_);
  EXPECT_EQ(blocks(2), blocks9_);
  EXPECT_TRUE(blocks(3).empty());
}

TEST_F(StepTensorsTest, PaddingMeansNothingToAGraph) {
  EXPECT_EQ(Pad<int64_t>(tensors_, TensorKind::kSlotMapping), -1);
  EXPECT_EQ(Pad<int32_t>(tensors_, TensorKind::kBlockTables), -1);
  EXPECT_EQ(Pad<int32_t>(tensors_, TensorKind::kSeqLens), 0);
  EXPECT_EQ(Pad<int32_t>(tensors_, TensorKind::kQueryStarts), 5);
}

TEST_F(StepTensorsTest, ARequestKeepsItsMadeUpContentInAnotherRow) {
  const std::vector<uint64_t> seeds = Values<uint64_t>(tensors_, TensorKind::kSeeds);
  const std::vector<int32_t> tokens = Values<int32_t>(tensors_, TensorKind::kTokenIds);
  StepPlan other;
  other.rows = std::span<const RowPlan>(rows_).subspan(1, 1);
  tensors_.Fill(other);
  EXPECT_EQ(Values<uint64_t>(tensors_, TensorKind::kSeeds), std::vector<uint64_t>{seeds[1]});
  EXPECT_EQ(Values<int32_t>(tensors_, TensorKind::kTokenIds), std::vector<int32_t>{tokens[4]});
  EXPECT_NE(seeds[0], seeds[1]);
}

TEST_F(StepTensorsTest, AnotherSeedMakesUpOtherContent) {
  StepTensors other(2, 4, 2);
  other.Fill(plan_);
  EXPECT_NE(Values<int32_t>(other, TensorKind::kTokenIds),
            Values<int32_t>(tensors_, TensorKind::kTokenIds));
  EXPECT_EQ(Values<int64_t>(other, TensorKind::kSlotMapping),
            Values<int64_t>(tensors_, TensorKind::kSlotMapping));
}

}  // namespace
}  // namespace h2d::replay
