#include "h2d/device/cuda/cuda_state.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "h2d/device/cuda/capture_guard.h"
#include "h2d/device/cuda/cuda_error.h"
#include "h2d/device/cuda/device_tags.h"

namespace h2d::internal {

Expected<std::shared_ptr<CudaState>> CudaState::Create(int ordinal, uint64_t max_pinned_bytes) {
  Expected<const DriverApi*> api = LoadDriverApi(ordinal);
  if (!api) return ErrorOf(api);
  const std::string device_text = "CUDA device " + std::to_string(ordinal);
  const CaptureGuard guard(**api);
  CUdevice device = 0;
  if (const CUresult result = (*api)->DeviceGet(&device, ordinal); result != CUDA_SUCCESS) {
    return CudaFailure(result, "Opening " + device_text);
  }
  CUcontext context = nullptr;
  if (const CUresult result = (*api)->DevicePrimaryCtxRetain(&context, device);
      result != CUDA_SUCCESS) {
    return CudaFailure(result, "Taking the primary context of " + device_text);
  }
  return std::make_shared<CudaState>(**api, ordinal, device, context, max_pinned_bytes);
}

CudaState::CudaState(const DriverApi& api, int ordinal, CUdevice device, CUcontext context,
                     uint64_t max_pinned_bytes)
    : api_(api),
      ordinal_(ordinal),
      device_(device),
      context_(context),
      device_tag_(CudaDeviceTag(ordinal)),
      pinned_(max_pinned_bytes) {}

CudaState::~CudaState() {
  if (!in_own_process() || latch_.closed()) return;
  if (FreeIdle()) static_cast<void>(api_.DevicePrimaryCtxRelease(device_));
}

void CudaState::DestroyEvent(uint64_t raw) noexcept {
  if (latch_.closed()) return;
  const auto event = reinterpret_cast<CUevent>(raw);
  static_cast<void>(InAnyContext([&] { return api_.EventDestroy(event); }));
}

void CudaState::ReleasePinned(std::byte* data, uint64_t /*bytes*/) noexcept {
  pinned_.Release(data);
}

Unexpected CudaState::Failure(CUresult result, std::string_view attempt) {
  if (latch_.closed()) return latch_.Failure();
  Error error = CudaErrorOf(result, attempt);
  if (IsStickyCudaError(result)) latch_.Close(error);
  return Unexpected(std::move(error));
}

Expected<std::byte*> CudaState::TakePinned(uint64_t bytes) {
  const std::optional<uint64_t> block_bytes = PinnedCache::BlockBytes(bytes);
  if (!block_bytes) return NoMorePinned(bytes);
  if (std::byte* idle = pinned_.TakeIdle(*block_bytes, PinnedCache::Fit::kUpToTwice)) return idle;
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  if (pinned_.Reserve(*block_bytes)) {
    void* data = nullptr;
    result = InOwnContext([&] {
      const CaptureGuard capture(api_);
      return api_.MemHostAlloc(&data, *block_bytes, CU_MEMHOSTALLOC_PORTABLE);
    });
    if (result == CUDA_SUCCESS) {
      pinned_.Added(static_cast<std::byte*>(data), *block_bytes);
      return static_cast<std::byte*>(data);
    }
    pinned_.NotAdded(*block_bytes);
  }
  if (result != CUDA_ERROR_OUT_OF_MEMORY) {
    return Failure(result,
                   "Allocating " + std::to_string(*block_bytes) + " bytes of pinned memory");
  }
  if (std::byte* idle = pinned_.TakeIdle(*block_bytes, PinnedCache::Fit::kAnyLarger)) return idle;
  return NoMorePinned(bytes);
}

Unexpected CudaState::NoMorePinned(uint64_t bytes) const {
  return MakeError(ErrorCode::kResourceExhausted,
                   "There is no room for " + std::to_string(bytes) +
                       " more bytes of pinned memory: CUDA device " + std::to_string(ordinal_) +
                       " owns " + std::to_string(pinned_.owned_bytes()) + " bytes, of which " +
                       std::to_string(pinned_.idle_bytes()) +
                       " are idle and given back by Trim, and may own " +
                       std::to_string(pinned_.max_bytes()) + "; or the machine has no more.",
                   CUDA_ERROR_OUT_OF_MEMORY);
}

Expected<void> CudaState::FreeIdle() {
  const std::vector<std::byte*> blocks = pinned_.TakeAllIdle();
  CUresult first = CUDA_SUCCESS;
  size_t kept = 0;
  for (std::byte* block : blocks) {
    // After a sticky error the driver frees nothing more.
    const CUresult result = IsStickyCudaError(first) ? first : FreePinned(block);
    if (result == CUDA_SUCCESS) {
      pinned_.Freed(block);
      continue;
    }
    pinned_.Release(block);
    ++kept;
    if (first == CUDA_SUCCESS) first = result;
  }
  if (kept == 0) return {};
  return Failure(first, "Freeing " + std::to_string(blocks.size()) +
                            " idle blocks of pinned memory of CUDA device " +
                            std::to_string(ordinal_) + ", of which " + std::to_string(kept) +
                            " stay in its cache,");
}

CUresult CudaState::FreePinned(std::byte* block) const noexcept {
  return InOwnContext([&] {
    const CaptureGuard capture(api_);
    return api_.MemFreeHost(block);
  });
}

}  // namespace h2d::internal
