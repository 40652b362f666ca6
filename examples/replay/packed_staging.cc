#include "h2d/examples/replay/packed_staging.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "h2d/stager/pinned_stager.h"
#include "h2d/stager/step_writer.h"

namespace h2d::replay {
namespace {

bool StartsWith(std::span<const int32_t> values, std::span<const int32_t> first) {
  return first.size() <= values.size() && std::equal(first.begin(), first.end(), values.begin());
}

enum class Compare : bool { kNo, kYes };

class PackedStaging final : public StepStaging {
 public:
  PackedStaging(const StepFields& fields, Compare compare, std::unique_ptr<PinnedStager> stager,
                std::vector<StepWriter> writers)
      : fields_(fields),
        compare_(compare),
        stager_(std::move(stager)),
        writers_(std::move(writers)) {}

  Expected<void> Stage(const StepInputs& step) override {
    StepWriter& writer = writers_[step.slab];
    if (compare_ == Compare::kNo) writer.Invalidate();
    Expected<void> ok = WriteTokens(writer, fields_.tokens[step.graph], step.tensors);
    if (ok) ok = WriteBatch(writer, step.tensors);
    if (!ok) return ok;
    // The step leaves when its last part is ready, and that is what new requests need.
    Expected<CopyOutcome> sent = writer.Submit(step.admissions);
    if (!sent) return ErrorOf(sent);
    return {};
  }

  StagerStats stats() const override { return stager_->stats(); }

 private:
  static Expected<void> WriteTokens(StepWriter& writer, const TokenFields& fields,
                                    const StepTensors& tensors) {
    Expected<void> ok = writer.Set(fields.token_ids, tensors.token_ids());
    if (ok) ok = writer.Set(fields.positions, tensors.positions());
    if (ok) ok = writer.Set(fields.slot_mapping, tensors.slot_mapping());
    return ok;
  }

  Expected<void> WriteBatch(StepWriter& writer, const StepTensors& tensors) {
    const std::span<const int32_t> starts = tensors.query_starts();
    Expected<void> ok = writer.Edit(fields_.query_starts, [starts](std::span<int32_t> field) {
      std::fill(std::copy(starts.begin(), starts.end(), field.begin()), field.end(), starts.back());
    });
    if (ok) ok = writer.Set(fields_.seq_lens, tensors.seq_lens());
    if (ok) ok = WriteBlockTables(writer, tensors);
    if (ok) ok = writer.Set(fields_.sampling, tensors.sampling());
    if (ok) ok = writer.Set(fields_.seeds, tensors.seeds());
    return ok;
  }

  // The largest tensor changes least: most requests stay in their row and keep their blocks, and
  // some have a new one behind them. So it is not even compared in full, unless it was never sent.
  Expected<void> WriteBlockTables(StepWriter& writer, const StepTensors& tensors) {
    const RowsField<int32_t> field = fields_.block_tables;
    const bool known = writer.Knows(field);
    Expected<void> ok;
    for (uint64_t row = 0; ok && row < table_.rows; ++row) {
      const std::span<const int32_t> blocks = tensors.BlocksOf(row);
      const std::span<const int32_t> held =
          writer.Values(field).subspan(row * table_.row_elements, writer.RowCount(field, row));
      if (!known || !StartsWith(blocks, held)) {
        ok = writer.SetRow(field, row, blocks);
      } else if (blocks.size() > held.size()) {
        ok = writer.AppendToRow(field, row, blocks.subspan(held.size()));
      }
    }
    return ok;
  }

  const StepFields& fields_;
  const StepLayout::FieldInfo& table_ = fields_.layout.fields()[fields_.block_tables.index];
  const Compare compare_;
  std::unique_ptr<PinnedStager> stager_;
  std::vector<StepWriter> writers_;
};

Expected<std::unique_ptr<StepStaging>> New(const std::shared_ptr<Device>& device,
                                           const StepSlabs& slabs, const StagerOptions& options,
                                           const StepWriterOptions& writer_options,
                                           Compare compare) {
  Expected<std::unique_ptr<PinnedStager>> stager = PinnedStager::Create(device, options);
  if (!stager) return ErrorOf(stager);
  std::vector<StepWriter> writers;
  for (const DevicePtr slab : slabs.slabs()) {
    Expected<StepWriter> writer =
        (*stager)->NewStepWriter(slabs.fields().layout, slab, writer_options);
    if (!writer) return ErrorOf(writer);
    writers.push_back(*std::move(writer));
  }
  return std::make_unique<PackedStaging>(slabs.fields(), compare, *std::move(stager),
                                         std::move(writers));
}

}  // namespace

Expected<std::unique_ptr<StepStaging>> NewPackedMirroredStaging(
    const std::shared_ptr<Device>& device, const StepSlabs& slabs, const StagerOptions& options,
    const StepWriterOptions& writer_options) {
  return New(device, slabs, options, writer_options, Compare::kYes);
}

Expected<std::unique_ptr<StepStaging>> NewPackedStaging(const std::shared_ptr<Device>& device,
                                                        const StepSlabs& slabs,
                                                        const StagerOptions& options,
                                                        const StepWriterOptions& writer_options) {
  return New(device, slabs, options, writer_options, Compare::kNo);
}

}  // namespace h2d::replay
