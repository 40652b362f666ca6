// The inputs of a decode step in one slab of device memory, sent in one copy of what changed.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <utility>
#include <vector>

#include "h2d/device/host/host_device.h"
#include "h2d/stager/pinned_stager.h"

int Fail(const h2d::Error& error) {
  std::fprintf(stderr, "%s\n", error.ToString().c_str());
  return 1;
}

struct Inputs {
  std::vector<int32_t> token_ids;
  std::vector<int32_t> new_blocks;  // of the first request
};
const Inputs kSteps[] = {{{11, 12, 13}, {5}}, {{11, 99, 13}, {8}}, {{11, 99, 13}, {}}};

// Device memory of at least `StepLayout::slab_bytes()` bytes.
alignas(h2d::StepLayout::kMaxAlignment) std::byte slab[1024];

int main() {
  h2d::StepLayout::Builder fields;
  const auto token_ids = fields.Add<int32_t>("token ids", /*capacity=*/8, {.pad = -1});
  const auto tables = fields.AddRows<int32_t>("block tables", /*rows=*/4, /*width=*/16, {.pad = 0});
  auto layout = std::move(fields).Build();
  if (!layout) return Fail(layout.error());
  // The graph is captured with the addresses `slab + *layout->offset(token_ids)` and so on.

  auto device = h2d::HostDevice::Create();
  h2d::Stream stream = device->NewStream();
  auto stager = h2d::PinnedStager::Create(device);
  if (!stager) return Fail(stager.error());
  auto writer = (*stager)->NewStepWriter(*layout, h2d::DevicePtr(slab));
  if (!writer) return Fail(writer.error());

  for (const Inputs& step : kSteps) {
    auto ok = writer->Set(token_ids, step.token_ids);
    if (ok) ok = writer->AppendToRow(tables, 0, step.new_blocks);
    if (!ok) return Fail(ok.error());
    auto outcome = writer->Submit(stream);
    if (!outcome) return Fail(outcome.error());
    std::printf("%s, %d bytes\n", h2d::ToString(outcome->kind).data(),
                static_cast<int>(outcome->bytes_sent));
  }
}
