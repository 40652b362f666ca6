#include "h2d/device/cuda/engine/cuda_stream.h"

#include <cuda_runtime_api.h>

#include "h2d/device/cuda/engine/on_device.h"

namespace h2d {

Expected<CudaStream> CudaStream::Create(const CudaDevice& device, CudaStreamKind kind) {
  cudaStream_t native = nullptr;
  const unsigned flags =
      kind == CudaStreamKind::kBlocking ? cudaStreamDefault : cudaStreamNonBlocking;
  Expected<void> ok = internal::BesideCaptures(*device.state(), "Creating a stream", [&] {
    return cudaStreamCreateWithFlags(&native, flags);
  });
  if (!ok) return ErrorOf(ok);
  Owned owned(native, Destroy{device.state()});
  Expected<Stream> stream = device.Wrap(native);
  if (!stream) return ErrorOf(stream);
  return CudaStream(std::move(owned), *stream);
}

void CudaStream::Destroy::operator()(CUstream_st* stream) const noexcept {
  static_cast<void>(internal::BesideCaptures(*state, "Destroying a stream",
                                             [&] { return cudaStreamDestroy(stream); }));
}

Expected<void> Synchronize(const CudaDevice& device, const Stream& stream) {
  return internal::BesideCaptures(*device.state(), "Synchronizing a stream", [&] {
    return cudaStreamSynchronize(CudaDevice::Native(stream));
  });
}

Expected<void> SynchronizeDevice(const CudaDevice& device) {
  return internal::OnDevice(*device.state(), "Synchronizing the device",
                            [] { return cudaDeviceSynchronize(); });
}

}  // namespace h2d
