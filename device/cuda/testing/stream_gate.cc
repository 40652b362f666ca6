#include "h2d/device/cuda/testing/stream_gate.h"

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include <cstddef>

#include "h2d/device/cuda/engine/on_device.h"

namespace h2d::conformance {
namespace {

constexpr size_t kWords = 1 << 16;  // more than a process closes gates
constexpr uint32_t kOpen = 1;

// Zeroed words that every device reads; never freed, because a stream may still look at one.
std::atomic<uint32_t>* Words() {
  static auto* const words = [] {
    void* memory = nullptr;
    if (cudaHostAlloc(&memory, kWords * sizeof(uint32_t), cudaHostAllocPortable) != cudaSuccess) {
      return static_cast<std::atomic<uint32_t>*>(nullptr);
    }
    auto* const made = static_cast<std::atomic<uint32_t>*>(memory);
    for (size_t i = 0; i < kWords; ++i) new (&made[i]) std::atomic<uint32_t>(0);
    return made;
  }();
  return words;
}

PFN_cuStreamWaitValue32_v11070 StreamWaitValue() {
  static const auto function = [] {
    void* address = nullptr;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    static_cast<void>(cudaGetDriverEntryPointByVersion("cuStreamWaitValue32", &address, 11070,
                                                       cudaEnableLegacyStream, &found));
    return reinterpret_cast<PFN_cuStreamWaitValue32_v11070>(address);
  }();
  return function;
}

}  // namespace

Expected<void> StreamGate::Close(const Stream& stream) {
  static std::atomic<size_t> next_word = 0;
  const size_t index = next_word.fetch_add(1);
  CUstream_st* const native = CudaDevice::Native(stream);
  if (closed_.contains(native)) return FailedPrecondition("The stream is held already.");
  std::atomic<uint32_t>* word = nullptr;
  Expected<void> ok = internal::BesideCaptures(*device_->state(), "Holding a stream", [&] {
    if (index >= kWords || Words() == nullptr || StreamWaitValue() == nullptr) {
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    word = Words() + index;
    // Under unified addressing the device knows pinned memory by its host address.
    return StreamWaitValue()(native, reinterpret_cast<CUdeviceptr>(word), kOpen,
                             CU_STREAM_WAIT_VALUE_EQ);
  });
  if (ok) closed_[native] = word;
  return ok;
}

Expected<void> StreamGate::Open(const Stream& stream) {
  const auto found = closed_.find(CudaDevice::Native(stream));
  if (found == closed_.end()) return FailedPrecondition("The stream is not held.");
  found->second->store(kOpen, std::memory_order_release);
  closed_.erase(found);
  return {};
}

void StreamGate::OpenAll() noexcept {
  for (const auto& [stream, word] : closed_) word->store(kOpen, std::memory_order_release);
  closed_.clear();
}

}  // namespace h2d::conformance
