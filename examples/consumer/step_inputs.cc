#include "step_inputs.h"

#include <utility>

using h2d::Expected;
using h2d::H2DMirror;
using h2d::PinnedStager;

StepInputs::StepInputs(std::unique_ptr<PinnedStager> stager, H2DMirror token_ids,
                       H2DMirror sequence_lengths)
    : stager_(std::move(stager)),
      token_ids_(std::move(token_ids)),
      sequence_lengths_(std::move(sequence_lengths)) {}

Expected<StepInputs> StepInputs::Create(std::shared_ptr<h2d::Device> device,
                                        const Addresses& addresses) {
  auto stager = PinnedStager::Create(std::move(device), {.slot_bytes = 4096});
  if (!stager) return h2d::ErrorOf(stager);
  auto token_ids = (*stager)->NewMirror(addresses.token_ids);
  if (!token_ids) return h2d::ErrorOf(token_ids);
  auto sequence_lengths = (*stager)->NewMirror(addresses.sequence_lengths);
  if (!sequence_lengths) return h2d::ErrorOf(sequence_lengths);
  return StepInputs(*std::move(stager), *std::move(token_ids), *std::move(sequence_lengths));
}

Expected<StepInputs::Staged> StepInputs::Stage(std::span<const int32_t> token_ids,
                                               std::span<const int32_t> sequence_lengths,
                                               const h2d::Stream& stream) {
  auto tokens = stager_->Copy(token_ids_, token_ids, stream, /*pad=*/-1);
  if (!tokens) return h2d::ErrorOf(tokens);
  auto lengths = stager_->Copy(sequence_lengths_, sequence_lengths, stream, /*pad=*/0);
  if (!lengths) return h2d::ErrorOf(lengths);
  return Staged{*tokens, *lengths};
}
