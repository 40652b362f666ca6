#include "h2d/examples/replay/replay.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "h2d/examples/replay/packed_staging.h"
#include "h2d/examples/replay/pipeline.h"
#include "h2d/examples/replay/planted_staging.h"
#include "h2d/examples/replay/separate_staging.h"
#include "h2d/examples/replay/step_shape.h"
#include "h2d/examples/replay/step_slabs.h"
#include "h2d/examples/replay/step_tensors.h"

namespace h2d::replay {
namespace {

// A ring that begins with one small slot and grows when it has to.
StagerOptions RingOptions(uint32_t slots, uint64_t slab_bytes) {
  StagerOptions options;
  options.slot_bytes = uint64_t{4} << 10;
  options.initial_slots = 1;
  options.max_slots = slots;
  options.max_pinned_bytes = std::max(options.max_pinned_bytes, 8 * slab_bytes);
  return options;
}

Expected<std::unique_ptr<StepStaging>> MakeStaging(Machine& machine, const StepSlabs& slabs,
                                                   const ReplayOptions& options) {
  const std::shared_ptr<Device>& device = machine.device();
  const StagingWay way = IsStagedByHand(options.plant) ? StagingWay::kSeparate : options.staging;
  const uint32_t slots = options.slots > 0 ? options.slots : TooFewSlotsFor(way);
  const StagerOptions ring = RingOptions(slots, slabs.fields().layout.slab_bytes());
  if (options.plant == Plant::kNoWait) return NewRingWithoutWait(device, slabs, slots);
  if (options.plant == Plant::kStaleMirror) return NewStagingWithSharedMirror(device, slabs, ring);
  switch (way) {
    case StagingWay::kSeparate:
      return NewSeparateStaging(device, slabs, ring);
    case StagingWay::kSeparateMirrored:
      return NewSeparateMirroredStaging(device, slabs, ring);
    case StagingWay::kPacked:
      return NewPackedStaging(device, slabs, ring, options.writer);
    case StagingWay::kPackedMirrored:
      break;
  }
  return NewPackedMirroredStaging(device, slabs, ring, options.writer);
}

PipelineOptions PipelineOptionsFor(Plant plant) {
  PipelineOptions options;
  options.wait_for_readers = plant != Plant::kWar;
  options.record_before_wait = plant != Plant::kLateRecord;
  options.graph_clears_seeds = plant == Plant::kGraphWrites;
  if (plant == Plant::kOneSlab) options.slabs = 1;
  return options;
}

// The parts of one run.
class Run {
 public:
  Run(std::span<const TraceRequest> trace, const ReplayOptions& options, Machine& machine)
      : options_(options), machine_(machine), scheduler_(trace, options.scheduler) {
    result_.machine = machine.name();
    result_.simulated_time = machine.has_simulated_time();
    result_.requests = static_cast<uint32_t>(trace.size());
  }

  Expected<void> Steps(const StepShape& shape, const OnProgress& on_progress) {
    const PipelineOptions pipeline_options = PipelineOptionsFor(options_.plant);
    Expected<StepSlabs> slabs = StepSlabs::Allocate(machine_, shape, pipeline_options.slabs);
    if (!slabs) return ErrorOf(slabs);
    Expected<std::unique_ptr<StepStaging>> staging = MakeStaging(machine_, *slabs, options_);
    if (!staging) return ErrorOf(staging);
    Expected<std::unique_ptr<Pipeline>> pipeline =
        Pipeline::Create(machine_, shape, *slabs, pipeline_options);
    if (!pipeline) return ErrorOf(pipeline);
    StepTensors tensors(options_.scheduler.block_size, shape.table_width, options_.seed);
    Expected<void> ok;
    while (ok && !IsWrong(**pipeline)) {
      const std::optional<StepPlan> plan = scheduler_.Next();
      if (!plan) {
        ok = (*pipeline)->Drain();
        break;
      }
      tensors.Fill(*plan);
      ok = (*pipeline)->RunStep(*plan, tensors, **staging);
      on_progress(Done());
    }
    Collect(**pipeline, **staging);
    if (IsWrong(**pipeline)) result_.failure = WhatWentWrong(**pipeline, *slabs);
    return ok;
  }

  ReplayResult& result() { return result_; }

 private:
  bool IsWrong(const Pipeline& pipeline) const {
    return pipeline.counts().mismatches > 0 || machine_.hazards() > 0;
  }

  uint32_t Done() const {
    return scheduler_.counts().finished + static_cast<uint32_t>(scheduler_.never_fit().size());
  }

  void Collect(const Pipeline& pipeline, const StepStaging& staging) {
    result_.scheduling = scheduler_.counts();
    result_.never_fit.assign(scheduler_.never_fit().begin(), scheduler_.never_fit().end());
    result_.steps = pipeline.counts();
    result_.stager = staging.stats();
    result_.hazards = machine_.hazards();
  }

  std::string WhatWentWrong(const Pipeline& pipeline, const StepSlabs& slabs) const {
    std::string text = pipeline.first_mismatch();
    if (!text.empty()) text += "\n";
    const std::string explained = machine_.Explain();
    if (!explained.empty()) text += explained + "\n" + slabs.Legend();
    return text;
  }

  const ReplayOptions& options_;
  Machine& machine_;
  Scheduler scheduler_;
  ReplayResult result_;
};

}  // namespace

Expected<ReplayResult> Replay(std::span<const TraceRequest> trace, const ReplayOptions& options,
                              Machine& machine, const OnProgress& on_progress) {
  Expected<StepShape> shape = ShapeFor(trace, options.scheduler);
  if (!shape) return ErrorOf(shape);
  const auto start = std::chrono::steady_clock::now();
  Run run(trace, options, machine);
  Expected<void> ok = run.Steps(*shape, on_progress);
  // What was found wrong says more than the error that followed from it.
  if (!ok && run.result().failure.empty()) return ErrorOf(ok);
  run.result().seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return std::move(run.result());
}

}  // namespace h2d::replay
