#include <cstdint>
#include <cstdio>
#include <vector>

#include "h2d/device/host/host_device.h"
#include "h2d/stager/pinned_stager.h"

int Fail(const h2d::Error& error) {
  std::fprintf(stderr, "%s\n", error.ToString().c_str());
  return 1;
}

int main() {
  auto device = h2d::HostDevice::Create();   // on a GPU: *h2d::CudaDevice::Create(0)
  h2d::Stream stream = device->NewStream();  // on a GPU: *device->Wrap(cuda_stream)
  std::vector<int32_t> slab(8);              // what the graph reads; on a GPU: device memory

  auto stager = h2d::PinnedStager::Create(device, {.slot_bytes = 4096});
  if (!stager) return Fail(stager.error());
  auto token_ids = (*stager)->NewMirror(h2d::Destination::Of(slab.data(), slab.size()));
  if (!token_ids) return Fail(token_ids.error());

  const std::vector<std::vector<int32_t>> steps = {{11, 12, 13}, {11, 99, 13}, {11, 99, 13}};
  for (const std::vector<int32_t>& tokens : steps) {
    auto outcome = (*stager)->Copy(*token_ids, tokens, stream, /*pad=*/-1);
    if (!outcome) return Fail(outcome.error());
    std::printf("%s, %d bytes\n", h2d::ToString(outcome->kind).data(),
                static_cast<int>(outcome->bytes_sent));
  }
}
