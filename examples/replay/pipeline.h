// The step loop of an engine: stage, order, launch, and look at what the graph read.
#ifndef H2D_EXAMPLES_REPLAY_PIPELINE_H_
#define H2D_EXAMPLES_REPLAY_PIPELINE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "h2d/device/event.h"
#include "h2d/device/stream.h"
#include "h2d/examples/replay/machine.h"
#include "h2d/examples/replay/scheduler.h"
#include "h2d/examples/replay/step_counts.h"
#include "h2d/examples/replay/step_shape.h"
#include "h2d/examples/replay/step_slabs.h"
#include "h2d/examples/replay/step_staging.h"
#include "h2d/examples/replay/step_tensors.h"

namespace h2d::replay {

struct PipelineOptions {
  // Steps that the host enqueues ahead of the device. More than there are slabs: so it is the
  // streams' order, not the host's, that keeps a slab from being overwritten too early.
  uint32_t run_ahead = 4;
  uint32_t slabs = 2;

  // Each is a bug when it has another value.
  bool wait_for_readers = true;     // plan streams wait for the graph that last read the slab,
  uint32_t readers_steps_back = 2;  // which is that of so many steps before: as many as slabs;
  bool record_before_wait = true;   // and are recorded before the graph's stream waits for them
  bool graph_clears_seeds = false;  // the graph writes what the staging takes for its own
};

// Three streams. Step k, in slab k mod 2:
//
//   plan        wait(graph k-2)  copies ...        record ---+
//   admissions  wait(graph k-2)  copies ...        record ---+   (steps that admit requests)
//   graph                                          wait <----+  graph k  record
//
// In a step that admits requests some copies, or the one of a packed step, go out on `admissions`:
// so what is known of a slab follows it from stream to stream.
//
// Every graph takes a snapshot of what it read. When a step is retired, all of that is compared
// with an image that was computed without the library.
class Pipeline {
 public:
  // All but `options` outlive it.
  static Expected<std::unique_ptr<Pipeline>> Create(Machine& machine, const StepShape& shape,
                                                    const StepSlabs& slabs,
                                                    const PipelineOptions& options);

  // Stages one step and launches its graph; retires the oldest step when `run_ahead` are in flight,
  // and all of them when the device was idle before this one.
  // Errors: the device's and the stager's. A mismatch is no error: see `counts`.
  Expected<void> RunStep(const StepPlan& plan, const StepTensors& tensors, StepStaging& staging);

  // Retires every step in flight.
  Expected<void> Drain();

  const StepCounts& counts() const noexcept { return counts_; }
  // Where the first wrong byte was, in a sentence; empty when there was none.
  const std::string& first_mismatch() const noexcept { return first_mismatch_; }

 private:
  // A step between its staging and its retirement; reused for step k + run_ahead.
  struct Flight {
    uint64_t step = 0;
    size_t graph = 0;
    std::vector<std::byte> expected;
    std::span<std::byte> snapshot;
    Event planned;
    Event admitted;
    Event done;
  };

  Pipeline(Machine& machine, const StepShape& shape, const StepSlabs& slabs,
           const PipelineOptions& options, const Stream& plan, const Stream& admissions,
           const Stream& graph);
  Expected<void> AddFlight();

  uint32_t SlabOf(uint64_t step) const { return static_cast<uint32_t>(step % options_.slabs); }
  Flight& FlightOf(uint64_t step) { return flights_[step % flights_.size()]; }
  Expected<void> WaitForReaders(const Stream& stream);
  Expected<void> StageAll(const StepPlan& plan, const StepTensors& tensors, StepStaging& staging);
  Expected<void> GraphWaitsFor(const Stream& stream, Event& event);
  void Expect(const StepTensors& tensors, Flight& flight) const;
  Expected<void> Launch(const StepPlan& plan, Flight& flight);
  Expected<void> CountInFlight();
  Expected<void> RetireOldest();
  void Verify(const Flight& flight);
  std::string Describe(const Flight& flight, size_t at) const;

  Machine& machine_;
  Device& device_;
  const StepShape& shape_;
  const StepSlabs& slabs_;
  const PipelineOptions options_;
  const Stream plan_stream_;
  const Stream admission_stream_;
  const Stream graph_stream_;
  std::vector<Flight> flights_;
  uint64_t next_step_ = 0;
  uint64_t oldest_step_ = 0;  // not retired
  StepCounts counts_;
  std::string first_mismatch_;
};

}  // namespace h2d::replay

#endif  // H2D_EXAMPLES_REPLAY_PIPELINE_H_
