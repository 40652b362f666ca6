#include "h2d/examples/replay/step_fields.h"

#include <string>
#include <utility>

namespace h2d::replay {
namespace {

std::string NameOf(TensorKind kind) { return std::string(ToString(kind)); }

TokenFields AddTokenFields(StepLayout::Builder& builder, uint32_t tokens) {
  const std::string width = " x" + std::to_string(tokens);
  return {
      .token_ids = builder.Add<int32_t>(NameOf(TensorKind::kTokenIds) + width, tokens, {.pad = 0}),
      .positions = builder.Add<int64_t>(NameOf(TensorKind::kPositions) + width, tokens, {.pad = 0}),
      .slot_mapping =
          builder.Add<int64_t>(NameOf(TensorKind::kSlotMapping) + width, tokens, {.pad = -1})};
}

}  // namespace

Expected<StepFields> StepFields::For(const StepShape& shape) {
  StepLayout::Builder builder;
  // The smallest graph, which decode steps run, comes last: its tokens lie beside the tensors of
  // the batch, so that one copy brings both.
  std::vector<TokenFields> tokens(shape.token_sizes.size());
  for (size_t graph = tokens.size(); graph-- > 0;) {
    tokens[graph] = AddTokenFields(builder, shape.token_sizes[graph]);
  }
  const uint64_t rows = shape.max_batch;
  // Where there is no request, query starts repeat the last one: another value in each step, so
  // that they are written in full and have no padding.
  const auto query_starts = builder.Add<int32_t>(NameOf(TensorKind::kQueryStarts), rows + 1);
  const auto seq_lens = builder.Add<int32_t>(NameOf(TensorKind::kSeqLens), rows, {.pad = 0});
  const auto block_tables = builder.AddRows<int32_t>(NameOf(TensorKind::kBlockTables), rows,
                                                     shape.table_width, {.pad = -1});
  const auto sampling =
      builder.Add<SamplingParams>(NameOf(TensorKind::kSampling), rows, {.pad = SamplingParams{}});
  const auto seeds = builder.Add<uint64_t>(NameOf(TensorKind::kSeeds), rows, {.pad = 0});
  Expected<StepLayout> layout = std::move(builder).Build();
  if (!layout) return ErrorOf(layout);
  return StepFields{*std::move(layout), std::move(tokens), query_starts, seq_lens,
                    block_tables,       sampling,          seeds};
}

uint64_t StepFields::OffsetOf(TensorKind kind, size_t graph) const noexcept {
  switch (kind) {
    case TensorKind::kTokenIds:
      return *layout.offset(tokens[graph].token_ids);
    case TensorKind::kPositions:
      return *layout.offset(tokens[graph].positions);
    case TensorKind::kSlotMapping:
      return *layout.offset(tokens[graph].slot_mapping);
    case TensorKind::kQueryStarts:
      return *layout.offset(query_starts);
    case TensorKind::kSeqLens:
      return *layout.offset(seq_lens);
    case TensorKind::kBlockTables:
      return *layout.offset(block_tables);
    case TensorKind::kSampling:
      return *layout.offset(sampling);
    case TensorKind::kSeeds:
      break;
  }
  return *layout.offset(seeds);
}

}  // namespace h2d::replay
