// A step's fields over plain host memory: values, errors and outcomes.
#include "h2d/stager/step_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "h2d/device/host/host_device.h"
#include "h2d/stager/pinned_stager.h"

namespace h2d {
namespace {

using Kind = CopyOutcome::Kind;

class StepWriterTest : public testing::Test {
 protected:
  StepWriterTest() {
    StepLayout::Builder builder;
    tokens_ = builder.Add<int32_t>("tokens", 4, {.pad = -1});
    tables_ = builder.AddRows<int32_t>("tables", 3, 4, {.pad = 0});
    sampled_ = builder.Add<int32_t>("sampled", 4, {.device_written = true});
    scales_ = builder.Add<float>("scales", 2);
    layout_.emplace(*std::move(builder).Build());
    stager_ =
        *PinnedStager::Create(device_, {.slot_bytes = 256, .initial_slots = 1, .max_slots = 1});
    writer_.emplace(*stager_->NewStepWriter(*layout_, DevicePtr(slab_.data())));
  }

  int32_t* At(uint64_t offset) { return slab_.data() + offset / sizeof(int32_t); }
  std::vector<int32_t> Tokens() { return {At(0), At(0) + 4}; }

  void SetAll() {
    ASSERT_TRUE(writer_->Set(tokens_, std::vector<int32_t>{1, 2}));
    for (uint64_t row = 0; row < 3; ++row) {
      ASSERT_TRUE(writer_->SetRow(tables_, row, std::vector<int32_t>{int32_t(row)}));
    }
    ASSERT_TRUE(writer_->Set(scales_, std::vector<float>{0.5f, 1.5f}));
  }

  std::shared_ptr<HostDevice> device_ = HostDevice::Create();
  Stream stream_ = device_->NewStream();
  alignas(256) std::array<int32_t, 64> slab_{};
  Field<int32_t> tokens_;
  RowsField<int32_t> tables_;
  Field<int32_t> sampled_;
  Field<float> scales_;
  std::optional<StepLayout> layout_;
  std::unique_ptr<PinnedStager> stager_;
  std::optional<StepWriter> writer_;
};

TEST_F(StepWriterTest, AStepTravelsOnceAndAnUnchangedOneNotAtAll) {
  SetAll();
  auto first = writer_->Submit(stream_);
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(first->kind, Kind::kIssued);
  EXPECT_EQ(Tokens(), (std::vector<int32_t>{1, 2, -1, -1}));
  EXPECT_EQ(*At(*layout_->offset(tables_) + 2 * 16), 2);
  SetAll();
  EXPECT_EQ(*writer_->Submit(stream_), (CopyOutcome{Kind::kSkipped, 0}));
  EXPECT_EQ(stager_->stats().copies_skipped, 1u);
}

TEST_F(StepWriterTest, OneChangedValueTravelsAlone) {
  SetAll();
  ASSERT_TRUE(writer_->Submit(stream_));
  SetAll();
  ASSERT_TRUE(writer_->SetAt(tokens_, 1, std::vector<int32_t>{9}));
  EXPECT_EQ(*writer_->Submit(stream_), (CopyOutcome{Kind::kTrimmed, 4}));
  EXPECT_EQ(Tokens(), (std::vector<int32_t>{1, 9, -1, -1}));
}

TEST_F(StepWriterTest, AFieldThatTheGraphWritesIsNeitherCrossedNorTakenForKnown) {
  SetAll();
  ASSERT_TRUE(writer_->Set(sampled_, std::vector<int32_t>{5, 5, 5, 5}));
  ASSERT_TRUE(writer_->Submit(stream_));
  int32_t* const sampled = At(*layout_->offset(sampled_));
  sampled[0] = 77;  // the graph
  ASSERT_TRUE(writer_->SetRow(tables_, 2, std::vector<int32_t>{8}));
  ASSERT_TRUE(writer_->Set(scales_, std::vector<float>{2.5f}));
  ASSERT_TRUE(writer_->Submit(stream_));
  EXPECT_EQ(sampled[0], 77) << "both neighbours changed, and it kept what the graph wrote";
  ASSERT_TRUE(writer_->Set(sampled_, std::vector<int32_t>{5}));
  ASSERT_TRUE(writer_->Submit(stream_));
  EXPECT_EQ(sampled[0], 5) << "set to what it was set to before, it travels all the same";
}

TEST_F(StepWriterTest, RowsAreMovedSwappedAndCleared) {
  SetAll();
  ASSERT_TRUE(writer_->SwapRows(tables_, 0, 2));
  ASSERT_TRUE(writer_->CopyRow(tables_, 2, 1));
  ASSERT_TRUE(writer_->SetRow(tables_, 2, std::vector<int32_t>{}));
  ASSERT_TRUE(writer_->Submit(stream_));
  const int32_t* const tables = At(*layout_->offset(tables_));
  EXPECT_EQ(tables[0], 2);
  EXPECT_EQ(tables[4], 0);
  EXPECT_EQ(tables[8], 0);
}

TEST_F(StepWriterTest, RowsHaveTheirOwnCounts) {
  SetAll();
  ASSERT_TRUE(writer_->Submit(stream_));
  ASSERT_TRUE(writer_->AppendToRow(tables_, 1, std::vector<int32_t>{5, 6}));
  EXPECT_EQ(writer_->RowCount(tables_, 1), 3u);
  EXPECT_EQ(*writer_->Submit(stream_), (CopyOutcome{Kind::kTrimmed, 8})) << "what was appended";
  ASSERT_TRUE(writer_->MoveRow(tables_, 1, 0));
  EXPECT_EQ(writer_->RowCount(tables_, 0), 3u);
  EXPECT_EQ(writer_->RowCount(tables_, 1), 0u);
  ASSERT_TRUE(writer_->SetRow(tables_, 2, std::vector<int32_t>{9, 9, 9, 9}));
  ASSERT_TRUE(writer_->SetRow(tables_, 2, std::vector<int32_t>{8}));
  ASSERT_TRUE(writer_->Submit(stream_));
  const int32_t* const tables = At(*layout_->offset(tables_));
  EXPECT_EQ(std::vector<int32_t>(tables, tables + 12),
            (std::vector<int32_t>{1, 5, 6, 0, 0, 0, 0, 0, 8, 0, 0, 0}))
      << "no stale tail";
  EXPECT_EQ(writer_->AppendToRow(tables_, 0, std::vector<int32_t>{7, 7}).error().code,
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(writer_->RowCount(tables_, 0), 3u);
}

TEST_F(StepWriterTest, ARowThatIsExchangedWithItselfIsNotWritten) {
  std::fill(slab_.begin(), slab_.end(), 77);
  ASSERT_TRUE(writer_->SwapRows(tables_, 1, 1));
  ASSERT_TRUE(writer_->CopyRow(tables_, 1, 1));
  ASSERT_TRUE(writer_->MoveRow(tables_, 1, 1));
  EXPECT_EQ(writer_->Submit(stream_)->kind, Kind::kSkipped);
  EXPECT_EQ(*At(*layout_->offset(tables_) + 16), 77) << "nobody ever set it";
}

TEST_F(StepWriterTest, AnAppendToARowThatWasForgottenBringsTheWholeRow) {
  int32_t* const row = At(*layout_->offset(tables_));
  const auto row_is = [&](std::vector<int32_t> values) {
    EXPECT_EQ(std::vector<int32_t>(row, row + 4), values);
  };
  ASSERT_TRUE(writer_->SetRow(tables_, 0, std::vector<int32_t>{1}));
  ASSERT_TRUE(writer_->Submit(stream_));
  std::fill(row, row + 4, 99);
  writer_->Invalidate(tables_);
  ASSERT_TRUE(writer_->AppendToRow(tables_, 0, std::vector<int32_t>{2}));
  ASSERT_TRUE(writer_->Submit(stream_));
  row_is({1, 2, 0, 0});
  // Forgotten only when it is submitted: until then the writer has not looked.
  ASSERT_TRUE(stager_->Copy({DevicePtr(row), 2, 4}, std::vector<int32_t>{99, 99}, stream_));
  ASSERT_TRUE(writer_->AppendToRow(tables_, 0, std::vector<int32_t>{3}));
  ASSERT_TRUE(writer_->Submit(stream_));
  row_is({1, 2, 3, 0});
  // Between the write and its submit.
  ASSERT_TRUE(writer_->AppendToRow(tables_, 0, std::vector<int32_t>{4}));
  std::fill(row, row + 4, 99);
  writer_->Invalidate();
  ASSERT_TRUE(writer_->Submit(stream_));
  row_is({1, 2, 3, 4});
}

TEST(StepWriterRows, AnAppendLeavesWhatTheGraphWroteAsItIs) {
  StepLayout::Builder builder;
  const auto rows = builder.AddRows<int32_t>("rows", 2, 4, {.device_written = true});
  const StepLayout layout = *std::move(builder).Build();
  const auto device = HostDevice::Create();
  const auto stager = *PinnedStager::Create(device, {.slot_bytes = 256});
  alignas(256) std::array<int32_t, 8> slab{};
  StepWriter writer = *stager->NewStepWriter(layout, DevicePtr(slab.data()));
  const Stream stream = device->NewStream();
  ASSERT_TRUE(writer.SetRow(rows, 0, std::vector<int32_t>{1, 2}));
  ASSERT_TRUE(writer.Submit(stream));
  slab[0] = 77;  // the graph
  ASSERT_TRUE(writer.AppendToRow(rows, 0, std::vector<int32_t>{3}));
  ASSERT_TRUE(writer.Submit(stream));
  EXPECT_EQ((std::vector<int32_t>{slab[0], slab[1], slab[2]}), (std::vector<int32_t>{77, 2, 3}));
}

TEST_F(StepWriterTest, WhatTheSlabHoldsIsKnownUntilAnotherPathWritesIt) {
  EXPECT_FALSE(writer_->Knows(tokens_));
  SetAll();
  EXPECT_TRUE(writer_->Knows(tokens_));
  ASSERT_TRUE(writer_->Set(sampled_, std::vector<int32_t>{1, 2, 3, 4}));
  EXPECT_FALSE(writer_->Knows(sampled_)) << "the graph writes it";
  ASSERT_TRUE(writer_->Submit(stream_));
  EXPECT_TRUE(writer_->Knows(tables_));
  ASSERT_TRUE(stager_->Copy(Destination::Of(At(0), 1), std::vector<int32_t>{6}, stream_));
  EXPECT_FALSE(writer_->Knows(tables_));
}

TEST_F(StepWriterTest, ACallbackEditsTheWholeField) {
  SetAll();
  ASSERT_TRUE(writer_->Submit(stream_));
  ASSERT_TRUE(writer_->Edit(tables_, [](std::span<int32_t> all) { all[5] = 42; }));
  EXPECT_EQ(writer_->Values(tables_)[5], 42);
  EXPECT_EQ(*writer_->Submit(stream_), (CopyOutcome{Kind::kTrimmed, 4}));
}

TEST_F(StepWriterTest, WhatAPlainCopyOverwroteIsForgotten) {
  SetAll();
  ASSERT_TRUE(writer_->Submit(stream_));
  ASSERT_TRUE(writer_->Set(tokens_, std::vector<int32_t>{1, 2}));  // equal, but asked for
  ASSERT_TRUE(stager_->Copy(Destination::Of(At(0), 4), std::vector<int32_t>{6, 6, 6, 6}, stream_));
  ASSERT_TRUE(writer_->Submit(stream_));
  EXPECT_EQ(Tokens(), (std::vector<int32_t>{1, 2, -1, -1}));
}

TEST_F(StepWriterTest, SlabsAndMirrorsAreDisjoint) {
  EXPECT_FALSE(stager_->NewMirror(Destination::Of(At(0), 1)));
  EXPECT_FALSE(stager_->NewStepWriter(*layout_, DevicePtr(slab_.data())));
  EXPECT_FALSE(stager_->NewStepWriter(*layout_, DevicePtr()));
  EXPECT_FALSE(stager_->NewStepWriter(*layout_, DevicePtr(uint64_t{128})));
  writer_.reset();
  EXPECT_TRUE(stager_->NewMirror(Destination::Of(At(0), 1)));
}

TEST_F(StepWriterTest, BadInputIsRefusedAndChangesNothing) {
  const std::vector<int32_t> five(5);
  EXPECT_EQ(writer_->Set(tokens_, five).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(writer_->SetRow(tables_, 3, std::vector<int32_t>{}).error().code,
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(writer_->SetAt(tokens_, 4, std::vector<int32_t>{1}).error().code,
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(writer_->SetAt(tokens_, ~uint64_t{0}, std::vector<int32_t>{1}).error().code,
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(writer_->SwapRows(tables_, 0, 3).error().code, ErrorCode::kInvalidArgument);
  StepLayout::Builder other;
  const auto foreign = other.Add<int32_t>("tokens", 4);
  EXPECT_EQ(writer_->Set(foreign, std::vector<int32_t>{1}).error().code,
            ErrorCode::kInvalidArgument);
  EXPECT_TRUE(writer_->Values(foreign).empty());
  EXPECT_EQ(writer_->Submit(stream_)->kind, Kind::kSkipped);
  StepWriter moved = std::move(*writer_);
  EXPECT_EQ(writer_->Submit(stream_).error().code, ErrorCode::kFailedPrecondition);
  stager_.reset();
  EXPECT_EQ(moved.Submit(stream_).error().code, ErrorCode::kFailedPrecondition);
}

TEST_F(StepWriterTest, AFullRingBlocksNoUnchangedStep) {
  SetAll();
  ASSERT_TRUE(writer_->Submit(stream_));
  auto lease = stager_->Acquire(4);
  SetAll();
  EXPECT_EQ(writer_->TrySubmit(stream_)->kind, Kind::kSkipped);
  ASSERT_TRUE(writer_->Set(tokens_, std::vector<int32_t>{3}));
  EXPECT_EQ(writer_->TrySubmit(stream_)->kind, Kind::kWouldBlock);
  lease = Expected<SlotLease>(tl::unexpect, Error{});
  EXPECT_EQ(writer_->TrySubmit(stream_)->kind, Kind::kTrimmed);
  EXPECT_EQ(Tokens()[0], 3);
}

TEST_F(StepWriterTest, AFieldOfAnotherElementSizeIsRefused) {
  const Field<int64_t> wide{tokens_.layout, tokens_.index};
  auto set = writer_->Set(wide, std::vector<int64_t>{1, 2, 3, 4});
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(writer_->Values(wide).empty());
  EXPECT_FALSE(writer_->Edit(wide, [](std::span<int64_t>) { ADD_FAILURE(); }));
}

TEST_F(StepWriterTest, AnEditMayUseTheWriter) {
  SetAll();
  auto edited = writer_->Edit(tokens_, [&](std::span<int32_t> tokens) {
    std::fill(tokens.begin(), tokens.end(), 7);
    EXPECT_TRUE(writer_->SwapRows(tables_, 0, 2));
    EXPECT_TRUE(writer_->Edit(tables_, [](std::span<int32_t> rows) { rows[4] = 11; }));
    EXPECT_TRUE(writer_->Set(tokens_, std::vector<int32_t>{5}));
  });
  ASSERT_TRUE(edited);
  ASSERT_TRUE(writer_->Submit(stream_));
  EXPECT_EQ(Tokens(), (std::vector<int32_t>{7, 7, 7, 7}));
  const int32_t* const tables = At(*layout_->offset(tables_));
  EXPECT_EQ(tables[0], 2);
  EXPECT_EQ(tables[4], 11);
  EXPECT_EQ(tables[8], 0);
}

TEST_F(StepWriterTest, AnEditThatMovesTheWriterAwayFails) {
  std::optional<StepWriter> other;
  auto edited = writer_->Edit(tokens_, [&](std::span<int32_t> tokens) {
    tokens[0] = 7;
    other.emplace(std::move(*writer_));
  });
  ASSERT_FALSE(edited);
  EXPECT_EQ(edited.error().code, ErrorCode::kFailedPrecondition);
  ASSERT_TRUE(other->Edit(tokens_, [](std::span<int32_t> tokens) { tokens[0] = 8; }));
  ASSERT_TRUE(other->Submit(stream_));
  EXPECT_EQ(Tokens()[0], 8);
}

}  // namespace
}  // namespace h2d
