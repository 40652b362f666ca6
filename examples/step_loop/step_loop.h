// A decode loop in miniature: each step's inputs are staged on a plan stream while the graph of the
// step before still runs on another. Two tensors, each with a mirror and a copy of its own; a dozen
// lie better in one slab with a `StepWriter` (examples/first_step, examples/replay).
#ifndef H2D_EXAMPLES_STEP_LOOP_STEP_LOOP_H_
#define H2D_EXAMPLES_STEP_LOOP_STEP_LOOP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "h2d/device/device.h"
#include "h2d/stager/pinned_stager.h"

class StepLoop {
 public:
  struct Config {
    h2d::Destination token_ids;  // what the graph was captured with
    h2d::Destination lengths;
    h2d::Stream plan;
    h2d::Stream graph;
    // Launches the step's graph: cudaGraphLaunch in production, a simulated one in a test.
    std::function<h2d::Expected<void>(const h2d::Stream&)> launch;
    // The bug that docs/testing_your_engine.md plants: false stages beside the graph that reads.
    bool wait_for_readers = true;
  };

  static h2d::Expected<StepLoop> Create(std::shared_ptr<h2d::Device> device, Config config);

  // Stages one step and launches its graph; waits for neither.
  h2d::Expected<void> Step(std::span<const int32_t> token_ids, std::span<const int32_t> lengths);

 private:
  struct Parts {
    std::unique_ptr<h2d::PinnedStager> stager;
    h2d::H2DMirror token_ids;
    h2d::H2DMirror lengths;
    h2d::Event staged;
    h2d::Event read;
  };
  StepLoop(std::shared_ptr<h2d::Device> device, Config config, Parts parts);

  std::shared_ptr<h2d::Device> device_;
  Config config_;
  Parts parts_;
};

#endif  // H2D_EXAMPLES_STEP_LOOP_STEP_LOOP_H_
