#include "step_loop.h"

#include <utility>

using h2d::Expected;

StepLoop::StepLoop(std::shared_ptr<h2d::Device> device, Config config, Parts parts)
    : device_(std::move(device)), config_(std::move(config)), parts_(std::move(parts)) {}

Expected<StepLoop> StepLoop::Create(std::shared_ptr<h2d::Device> device, Config config) {
  auto stager = h2d::PinnedStager::Create(device, {.slot_bytes = 4096, .initial_slots = 4});
  if (!stager) return ErrorOf(stager);
  auto token_ids = (*stager)->NewMirror(config.token_ids);
  if (!token_ids) return ErrorOf(token_ids);
  auto lengths = (*stager)->NewMirror(config.lengths);
  if (!lengths) return ErrorOf(lengths);
  auto staged = device->CreateEvent();
  if (!staged) return ErrorOf(staged);
  auto read = device->CreateEvent();
  if (!read) return ErrorOf(read);
  return StepLoop(std::move(device), std::move(config),
                  Parts{*std::move(stager), *std::move(token_ids), *std::move(lengths),
                        *std::move(staged), *std::move(read)});
}

Expected<void> StepLoop::Step(std::span<const int32_t> token_ids,
                              std::span<const int32_t> lengths) {
  if (config_.wait_for_readers) {
    // The graph of the step before reads these buffers. Before the first step: no wait.
    if (auto ok = device_->WaitEvent(config_.plan, parts_.read); !ok) return ok;
  }
  auto tokens = parts_.stager->Copy(parts_.token_ids, token_ids, config_.plan, /*pad=*/-1);
  if (!tokens) return ErrorOf(tokens);
  auto sizes = parts_.stager->Copy(parts_.lengths, lengths, config_.plan, /*pad=*/0);
  if (!sizes) return ErrorOf(sizes);

  if (auto ok = device_->Record(parts_.staged, config_.plan); !ok) return ok;
  if (auto ok = device_->WaitEvent(config_.graph, parts_.staged); !ok) return ok;
  if (auto ok = config_.launch(config_.graph); !ok) return ok;
  return device_->Record(parts_.read, config_.graph);
}
