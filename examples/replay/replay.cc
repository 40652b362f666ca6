#include "h2d/examples/replay/replay.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "h2d/examples/replay/destinations.h"
#include "h2d/examples/replay/library_staging.h"
#include "h2d/examples/replay/pipeline.h"
#include "h2d/examples/replay/planted_staging.h"
#include "h2d/examples/replay/step_shape.h"
#include "h2d/examples/replay/step_tensors.h"

namespace h2d::replay {
namespace {

uint64_t LargestImage(const Destinations& destinations) {
  uint64_t bytes = 0;
  for (const Destination& destination : destinations.all()) {
    bytes = std::max(bytes, destination.count * destination.element_bytes);
  }
  return bytes;
}

Expected<std::unique_ptr<StepStaging>> MakeStaging(Machine& machine,
                                                   const Destinations& destinations,
                                                   const ReplayOptions& options) {
  const std::shared_ptr<Device>& device = machine.device();
  const uint64_t largest = LargestImage(destinations);
  const StagerOptions ring = RingOptions(options.slots, largest);
  switch (options.plant) {
    case Plant::kNoWait:
      return NewRingWithoutWait(device, destinations.all(), options.slots, largest);
    case Plant::kStaleMirror:
      return NewStagingWithSharedMirror(device, destinations.all(), destinations.per_set(), ring);
    default:
      return options.mirrors ? NewMirroredStaging(device, destinations.all(), ring)
                             : NewPlainStaging(device, destinations.all(), ring);
  }
}

PipelineOptions PipelineOptionsFor(Plant plant) {
  PipelineOptions options;
  options.wait_for_readers = plant != Plant::kWar;
  options.record_before_wait = plant != Plant::kLateRecord;
  return options;
}

// The parts of one run.
class Run {
 public:
  Run(std::span<const TraceRequest> trace, const ReplayOptions& options, Machine& machine)
      : options_(options), machine_(machine), scheduler_(trace, options.scheduler) {
    result_.machine = machine.name();
    result_.requests = static_cast<uint32_t>(trace.size());
  }

  Expected<void> Steps(const StepShape& shape, const OnProgress& on_progress) {
    Expected<Destinations> destinations =
        Destinations::Allocate(machine_, shape, PipelineOptionsFor(options_.plant).sets);
    if (!destinations) return ErrorOf(destinations);
    Expected<std::unique_ptr<StepStaging>> staging = MakeStaging(machine_, *destinations, options_);
    if (!staging) return ErrorOf(staging);
    Expected<std::unique_ptr<Pipeline>> pipeline =
        Pipeline::Create(machine_, shape, *destinations, PipelineOptionsFor(options_.plant));
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
    if (!IsWrong(pipeline)) return;
    result_.failure = pipeline.first_mismatch();
    if (!result_.failure.empty()) result_.failure += "\n";
    result_.failure += machine_.Explain();
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
