// The sizes that the step's graphs were captured with.
#ifndef H2D_EXAMPLES_REPLAY_STEP_SHAPE_H_
#define H2D_EXAMPLES_REPLAY_STEP_SHAPE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "h2d/device/error.h"
#include "h2d/examples/replay/scheduler.h"
#include "h2d/examples/replay/tensors.h"
#include "h2d/examples/replay/trace.h"

namespace h2d::replay {

// An engine captures one graph for each of a few token counts, and runs the smallest that holds the
// step: a decode step does not pay for the padding of a prefill step. All graphs are captured for
// `max_batch` rows.
struct StepShape {
  uint32_t max_batch = 0;
  uint32_t table_width = 0;           // blocks of the longest request that can run
  std::vector<uint32_t> token_sizes;  // ascending; the last one is a step's budget

  // The index in `token_sizes` of the smallest graph for `tokens`, which is at most the budget.
  size_t GraphFor(uint32_t tokens) const noexcept;

  // Elements of a tensor in graph `graph`.
  uint64_t CountOf(TensorKind kind, size_t graph) const noexcept;
  uint64_t BytesOf(TensorKind kind, size_t graph) const noexcept;
  // Of all tensors of the largest graph.
  uint64_t MostStepBytes() const noexcept;
};

uint32_t ElementBytesOf(TensorKind kind) noexcept;

// The shape for a trace and a scheduler: graphs for `max_batch` tokens, then always twice as many,
// up to the budget.
// Errors: block tables above 16 MiB (`kInvalidArgument`): nobody stages that every step.
Expected<StepShape> ShapeFor(std::span<const TraceRequest> trace, const SchedulerOptions& options);

}  // namespace h2d::replay

#endif  // H2D_EXAMPLES_REPLAY_STEP_SHAPE_H_
