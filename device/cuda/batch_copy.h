// One driver call for many copies.
#ifndef H2D_DEVICE_CUDA_BATCH_COPY_H_
#define H2D_DEVICE_CUDA_BATCH_COPY_H_

#include <span>

#include "h2d/device/cuda/driver_api.h"
#include "h2d/device/device.h"

namespace h2d::internal {

// Enqueues `entries` (not empty, none of them empty) on `stream` (not the legacy default stream),
// the sources read in stream order. Where the toolkit or the driver has no batches, with a call for
// each entry, in order, up to the first that fails.
CUresult CopyBatch(const DriverApi& api, std::span<const CopyEntry> entries, CUstream stream);

}  // namespace h2d::internal

#endif  // H2D_DEVICE_CUDA_BATCH_COPY_H_
