#include "h2d/device/cuda/testing/stream_gate.h"

#include <cuda.h>
#include <cudaTypedefs.h>

#include <cstddef>

#include "h2d/device/cuda/testing/runtime_call.h"

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

Expected<void> StreamGate::Close(cudaStream_t stream) {
  static std::atomic<size_t> next_word = 0;
  const size_t index = next_word.fetch_add(1);
  if (closed_.contains(stream)) return FailedPrecondition("The stream is held already.");
  if (index >= kWords || Words() == nullptr || StreamWaitValue() == nullptr) {
    return ResourceExhausted("No stream can be held any more.");
  }
  std::atomic<uint32_t>* const word = Words() + index;
  // Under unified addressing the device knows pinned memory by its host address.
  const CUresult result = StreamWaitValue()(stream, reinterpret_cast<CUdeviceptr>(word), kOpen,
                                            CU_STREAM_WAIT_VALUE_EQ);
  Expected<void> ok = Called("Holding a stream", static_cast<cudaError_t>(result));
  if (ok) closed_[stream] = word;
  return ok;
}

Expected<void> StreamGate::Open(cudaStream_t stream) {
  const auto found = closed_.find(stream);
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
