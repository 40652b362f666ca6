#include "h2d/examples/replay/step_tensors.h"

#include "h2d/examples/replay/hash.h"

namespace h2d::replay {
namespace {

constexpr uint64_t kVocabulary = 32'000;

SamplingParams SamplingOf(uint64_t hash) {
  // Most requests keep the defaults, as they do in the field.
  if (hash % 4 != 0) return {};
  return SamplingParams{.temperature = static_cast<float>(hash >> 8 & 0xf) / 8,
                        .top_p = 1.0F - static_cast<float>(hash >> 16 & 0x7) / 16};
}

}  // namespace

void StepTensors::Fill(const StepPlan& plan) {
  token_ids_.clear();
  positions_.clear();
  slot_mapping_.clear();
  query_starts_.assign(1, 0);
  seq_lens_.clear();
  block_tables_.clear();
  block_counts_.clear();
  sampling_.clear();
  seeds_.clear();
  for (const RowPlan& row : plan.rows) {
    AddTokens(row);
    AddRow(row);
  }
}

void StepTensors::AddTokens(const RowPlan& row) {
  const uint64_t request_hash = HashOf(seed_, row.request);
  for (uint32_t i = row.computed; i < row.computed + row.scheduled; ++i) {
    token_ids_.push_back(static_cast<int32_t>(HashOf(request_hash, i) % kVocabulary));
    positions_.push_back(i);
    slot_mapping_.push_back(int64_t{row.blocks[i / block_size_]} * block_size_ + i % block_size_);
  }
}

void StepTensors::AddRow(const RowPlan& row) {
  const uint64_t request_hash = HashOf(seed_, row.request);
  query_starts_.push_back(static_cast<int32_t>(token_ids_.size()));
  seq_lens_.push_back(static_cast<int32_t>(row.computed + row.scheduled));
  block_tables_.insert(block_tables_.end(), row.blocks.begin(), row.blocks.end());
  block_tables_.insert(block_tables_.end(), table_width_ - row.blocks.size(), -1);
  block_counts_.push_back(row.blocks.size());
  sampling_.push_back(SamplingOf(request_hash));
  seeds_.push_back(request_hash);
}

std::span<const int32_t> StepTensors::BlocksOf(uint64_t row) const noexcept {
  if (row >= block_counts_.size()) return {};
  return std::span(block_tables_).subspan(row * table_width_, block_counts_[row]);
}

TensorView StepTensors::View(TensorKind kind) const {
  switch (kind) {
    case TensorKind::kTokenIds:
      return TensorValues<int32_t>{token_ids_, 0};
    case TensorKind::kPositions:
      return TensorValues<int64_t>{positions_, 0};
    case TensorKind::kSlotMapping:
      return TensorValues<int64_t>{slot_mapping_, -1};
    case TensorKind::kQueryStarts:
      // Rows beyond the batch begin where the last one ends: they have no tokens.
      return TensorValues<int32_t>{query_starts_, query_starts_.back()};
    case TensorKind::kSeqLens:
      return TensorValues<int32_t>{seq_lens_, 0};
    case TensorKind::kBlockTables:
      return TensorValues<int32_t>{block_tables_, -1};
    case TensorKind::kSampling:
      return TensorValues<SamplingParams>{sampling_, SamplingParams{}};
    case TensorKind::kSeeds:
      break;
  }
  return TensorValues<uint64_t>{seeds_, 0};
}

}  // namespace h2d::replay
