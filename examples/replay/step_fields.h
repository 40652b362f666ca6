// The one layout of a step: each tensor that a graph reads is a field of a slab.
#ifndef H2D_EXAMPLES_REPLAY_STEP_FIELDS_H_
#define H2D_EXAMPLES_REPLAY_STEP_FIELDS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "h2d/device/error.h"
#include "h2d/examples/replay/step_shape.h"
#include "h2d/examples/replay/tensors.h"
#include "h2d/stager/step_layout.h"

namespace h2d::replay {

// What one graph reads for each token, as wide as the graph was captured.
struct TokenFields {
  Field<int32_t> token_ids;
  Field<int64_t> positions;
  Field<int64_t> slot_mapping;
};

// Built once, before the graphs are captured; a graph's addresses are a slab's plus the offsets.
struct StepFields {
  // Errors: the layout's.
  static Expected<StepFields> For(const StepShape& shape);

  // Where graph `graph` finds a tensor, in bytes from the slab's start.
  uint64_t OffsetOf(TensorKind kind, size_t graph) const noexcept;

  StepLayout layout;
  std::vector<TokenFields> tokens;  // of each graph
  // Of the batch, for all graphs.
  Field<int32_t> query_starts;
  Field<int32_t> seq_lens;
  RowsField<int32_t> block_tables;  // a row for each request
  Field<SamplingParams> sampling;
  Field<uint64_t> seeds;
};

}  // namespace h2d::replay

#endif  // H2D_EXAMPLES_REPLAY_STEP_FIELDS_H_
