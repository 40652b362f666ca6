#include "h2d/examples/replay/step_shape.h"

#include <algorithm>
#include <string>

namespace h2d::replay {
namespace {

constexpr uint64_t kMaxTableBytes = uint64_t{16} << 20;

}  // namespace

uint32_t ElementBytesOf(TensorKind kind) noexcept {
  switch (kind) {
    case TensorKind::kTokenIds:
    case TensorKind::kQueryStarts:
    case TensorKind::kSeqLens:
    case TensorKind::kBlockTables:
      return sizeof(int32_t);
    case TensorKind::kPositions:
    case TensorKind::kSlotMapping:
      return sizeof(int64_t);
    case TensorKind::kSampling:
      return sizeof(SamplingParams);
    case TensorKind::kSeeds:
      return sizeof(uint64_t);
  }
  return 0;
}

size_t StepShape::GraphFor(uint32_t tokens) const noexcept {
  const auto graph = std::lower_bound(token_sizes.begin(), token_sizes.end(), tokens);
  return static_cast<size_t>(graph - token_sizes.begin());
}

uint64_t StepShape::CountOf(TensorKind kind, size_t graph) const noexcept {
  if (IsPerToken(kind)) return token_sizes[graph];
  if (kind == TensorKind::kQueryStarts) return uint64_t{max_batch} + 1;
  if (kind == TensorKind::kBlockTables) return uint64_t{max_batch} * table_width;
  return max_batch;
}

uint64_t StepShape::BytesOf(TensorKind kind, size_t graph) const noexcept {
  return CountOf(kind, graph) * ElementBytesOf(kind);
}

uint64_t StepShape::MostStepBytes() const noexcept {
  uint64_t bytes = 0;
  for (const TensorKind kind : kAllTensors) bytes += BytesOf(kind, token_sizes.size() - 1);
  return bytes;
}

Expected<StepShape> ShapeFor(std::span<const TraceRequest> trace, const SchedulerOptions& options) {
  StepShape shape;
  shape.max_batch = options.max_batch;
  shape.table_width = 1;
  for (const TraceRequest& request : trace) {
    const uint32_t blocks = Scheduler::BlocksOf(request, options.block_size);
    if (blocks <= options.kv_blocks) shape.table_width = std::max(shape.table_width, blocks);
  }
  uint32_t tokens = std::min(options.max_batch, options.max_batched_tokens);
  for (; tokens < options.max_batched_tokens; tokens *= 2) shape.token_sizes.push_back(tokens);
  shape.token_sizes.push_back(options.max_batched_tokens);
  if (const uint64_t bytes = shape.BytesOf(TensorKind::kBlockTables, 0); bytes > kMaxTableBytes) {
    return InvalidArgument("The block tables of " + std::to_string(shape.max_batch) + " rows of " +
                           std::to_string(shape.table_width) + " blocks have " +
                           std::to_string(bytes) + " bytes; the most is " +
                           std::to_string(kMaxTableBytes) +
                           ". Lower --max-batch or raise --block-size.");
  }
  return shape;
}

}  // namespace h2d::replay
