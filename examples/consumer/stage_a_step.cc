// Stages three steps to host memory and prints what each of them took.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <vector>

#include "h2d/device/host/host_device.h"
#include "step_inputs.h"

namespace {

constexpr uint64_t kBatch = 8;

void Print(const char* name, const h2d::CopyOutcome& outcome) {
  std::printf("  %s: %s, %llu bytes\n", name, h2d::ToString(outcome.kind).data(),
              static_cast<unsigned long long>(outcome.bytes_sent));
}

int Fail(const h2d::Error& error) {
  std::fprintf(stderr, "%s\n", error.ToString().c_str());
  return 1;
}

}  // namespace

int main() {
  const std::shared_ptr<h2d::HostDevice> device = h2d::HostDevice::Create();
  const h2d::Stream stream = device->NewStream();
  std::vector<int32_t> token_ids(kBatch), sequence_lengths(kBatch);
  auto inputs = StepInputs::Create(device, {h2d::Destination::Of(token_ids.data(), kBatch),
                                            h2d::Destination::Of(sequence_lengths.data(), kBatch)});
  if (!inputs) return Fail(inputs.error());

  const std::vector<std::vector<int32_t>> tokens = {{11, 12, 13}, {11, 99, 13}, {11, 99, 13}};
  const std::vector<int32_t> lengths = {5, 7, 2};
  for (size_t step = 0; step < tokens.size(); ++step) {
    auto staged = inputs->Stage(tokens[step], lengths, stream);
    if (!staged) return Fail(staged.error());
    std::printf("step %zu\n", step);
    Print("token ids", staged->token_ids);
    Print("sequence lengths", staged->sequence_lengths);
  }
  const bool right = token_ids == std::vector<int32_t>{11, 99, 13, -1, -1, -1, -1, -1} &&
                     sequence_lengths == std::vector<int32_t>{5, 7, 2, 0, 0, 0, 0, 0};
  std::printf("the destinations are %s\n", right ? "right" : "WRONG");
  return right ? 0 : 1;
}
