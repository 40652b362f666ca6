// What one engine sends before each step, to the fixed addresses that its captured graph reads.
#ifndef STEP_INPUTS_H_
#define STEP_INPUTS_H_

#include <cstdint>
#include <memory>
#include <span>

#include "h2d/device/device.h"
#include "h2d/device/device_ptr.h"
#include "h2d/device/error.h"
#include "h2d/device/stream.h"
#include "h2d/stager/pinned_stager.h"

class StepInputs {
 public:
  // Where the graph reads; both padded to the batch size that it was captured with.
  struct Addresses {
    h2d::Destination token_ids;         // int32_t, padded with -1
    h2d::Destination sequence_lengths;  // int32_t, padded with 0
  };

  // What a step did about its two tensors.
  struct Staged {
    h2d::CopyOutcome token_ids;
    h2d::CopyOutcome sequence_lengths;
  };

  static h2d::Expected<StepInputs> Create(std::shared_ptr<h2d::Device> device,
                                          const Addresses& addresses);

  // Enqueues the step's inputs on `stream`, which waits for the graph of the step before: the
  // stager does not order a copy after earlier readers of its destination.
  h2d::Expected<Staged> Stage(std::span<const int32_t> token_ids,
                              std::span<const int32_t> sequence_lengths, const h2d::Stream& stream);

  h2d::StagerStats stats() const noexcept { return stager_->stats(); }

 private:
  StepInputs(std::unique_ptr<h2d::PinnedStager> stager, h2d::H2DMirror token_ids,
             h2d::H2DMirror sequence_lengths);

  std::unique_ptr<h2d::PinnedStager> stager_;
  h2d::H2DMirror token_ids_;
  h2d::H2DMirror sequence_lengths_;
};

#endif  // STEP_INPUTS_H_
