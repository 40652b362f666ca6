#include "h2d/device/cuda/batch_copy.h"

#include <array>
#include <cstddef>
#include <vector>

namespace h2d::internal {
namespace {

CUresult CopyEach(const DriverApi& api, std::span<const CopyEntry> entries, CUstream stream) {
  for (const CopyEntry& entry : entries) {
    const CUresult result = api.MemcpyHtoDAsync(entry.destination.address(), entry.source.data(),
                                                entry.source.size(), stream);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

#if CUDA_VERSION >= 13000

// The driver wants a column for each property.
struct Columns {
  std::span<CUdeviceptr> destinations;
  std::span<CUdeviceptr> sources;
  std::span<size_t> sizes;
};

CUresult CopyTogether(const DriverApi& api, std::span<const CopyEntry> entries, CUstream stream,
                      const Columns& columns) {
  for (size_t i = 0; i < entries.size(); ++i) {
    columns.destinations[i] = entries[i].destination.address();
    columns.sources[i] = reinterpret_cast<CUdeviceptr>(entries[i].source.data());
    columns.sizes[i] = entries[i].source.size();
  }
  CUmemcpyAttributes attributes = {};
  attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  size_t first_entry = 0;  // from which on `attributes` hold
  return api.MemcpyBatchAsync(columns.destinations.data(), columns.sources.data(),
                              columns.sizes.data(), entries.size(), &attributes, &first_entry,
                              /*numAttrs=*/1, stream);
}

#endif

}  // namespace

CUresult CopyBatch(const DriverApi& api, std::span<const CopyEntry> entries, CUstream stream) {
#if CUDA_VERSION >= 13000
  if (api.MemcpyBatchAsync == nullptr) return CopyEach(api, entries, stream);
  constexpr size_t kOnStack = 64;  // more than the tensors of a step: no allocation
  if (entries.size() <= kOnStack) {
    std::array<CUdeviceptr, kOnStack> destinations;
    std::array<CUdeviceptr, kOnStack> sources;
    std::array<size_t, kOnStack> sizes;
    return CopyTogether(api, entries, stream, {destinations, sources, sizes});
  }
  std::vector<CUdeviceptr> destinations(entries.size());
  std::vector<CUdeviceptr> sources(entries.size());
  std::vector<size_t> sizes(entries.size());
  return CopyTogether(api, entries, stream, {destinations, sources, sizes});
#else
  return CopyEach(api, entries, stream);
#endif
}

}  // namespace h2d::internal
