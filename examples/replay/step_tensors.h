// A step's plan, laid out as the tensors that its graph reads.
#ifndef H2D_EXAMPLES_REPLAY_STEP_TENSORS_H_
#define H2D_EXAMPLES_REPLAY_STEP_TENSORS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "h2d/examples/replay/scheduler.h"
#include "h2d/examples/replay/tensors.h"

namespace h2d::replay {

// Holds the values of one step in ordinary memory and is filled anew for each. Token ids, sampling
// parameters and seeds, which a trace does not tell, are made up from `seed`; a request keeps its
// own through preemption.
class StepTensors {
 public:
  StepTensors(uint32_t block_size, uint32_t table_width, uint64_t seed)
      : block_size_(block_size), table_width_(table_width), seed_(seed) {}

  void Fill(const StepPlan& plan);

  // The values, here and below, are valid until the next `Fill`.
  std::span<const int32_t> token_ids() const noexcept { return token_ids_; }
  std::span<const int64_t> positions() const noexcept { return positions_; }
  std::span<const int64_t> slot_mapping() const noexcept { return slot_mapping_; }
  std::span<const int32_t> query_starts() const noexcept { return query_starts_; }
  std::span<const int32_t> seq_lens() const noexcept { return seq_lens_; }
  std::span<const SamplingParams> sampling() const noexcept { return sampling_; }
  std::span<const uint64_t> seeds() const noexcept { return seeds_; }
  // The blocks of the request in row `row`; none for a row beyond the batch.
  std::span<const int32_t> BlocksOf(uint64_t row) const noexcept;

  // Any of them, with what follows its values in a destination that is larger: what a graph
  // ignores. Token 0 at position 0 that is written to no slot (-1), rows of length 0 without
  // blocks (-1).
  TensorView View(TensorKind kind) const;

 private:
  void AddTokens(const RowPlan& row);
  void AddRow(const RowPlan& row);

  uint32_t block_size_;
  uint32_t table_width_;
  uint64_t seed_;
  std::vector<int32_t> token_ids_;
  std::vector<int64_t> positions_;
  std::vector<int64_t> slot_mapping_;
  std::vector<int32_t> query_starts_;
  std::vector<int32_t> seq_lens_;
  std::vector<int32_t> block_tables_;  // rows of `table_width_`
  std::vector<size_t> block_counts_;   // of each row
  std::vector<SamplingParams> sampling_;
  std::vector<uint64_t> seeds_;
};

}  // namespace h2d::replay

#endif  // H2D_EXAMPLES_REPLAY_STEP_TENSORS_H_
