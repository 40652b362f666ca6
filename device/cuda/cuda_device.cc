#include "h2d/device/cuda/cuda_device.h"

#include <array>
#include <string>
#include <utility>

#include "h2d/device/cuda/attempt_text.h"
#include "h2d/device/cuda/backoff.h"
#include "h2d/device/cuda/batch_copy.h"
#include "h2d/device/cuda/capture_guard.h"
#include "h2d/device/cuda/cuda_state.h"
#include "h2d/device/cuda/device_tags.h"

namespace h2d {
namespace {

using internal::CaptureGuard;
using internal::CudaState;

CUevent NativeEvent(const Event& event) noexcept { return reinterpret_cast<CUevent>(event.raw()); }

// Success, unless a sticky error has ended the device.
Expected<void> Alive(const CudaState& state) {
  if (state.latch().closed()) [[unlikely]]
    return state.latch().Failure();
  return {};
}

// What the driver knows of an address; all stay 0 for one that it does not know.
struct PointerAttributes {
  unsigned type = 0;
  unsigned managed = 0;
  CUdeviceptr start = 0;  // of the allocation, or of the registered part of one
  size_t bytes = 0;

  bool Hold(CUdeviceptr first, size_t size) const noexcept {
    return first >= start && first - start < bytes && size <= bytes - (first - start);
  }
};

// In one call, of 45 to 60 ns on an H200.
CUresult AskForAttributes(const internal::DriverApi& api, CUdeviceptr address,
                          PointerAttributes& known) {
  CUpointer_attribute attributes[] = {
      CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
      CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
  void* values[] = {&known.type, &known.managed, &known.start, &known.bytes};
  return api.PointerGetAttributes(4, attributes, values, address);
}

// Asks is-capturing, which never disturbs a capture. While a blocking stream captures, the legacy
// stream answers that it is part of it implicitly: work on it would invalidate that capture.
Expected<bool> IsCapturing(CudaState& state, const Stream& stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult result = state.OnStream(
      stream, [&] { return state.api().StreamIsCapturing(CudaDevice::Native(stream), &status); });
  if (result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) return true;
  if (result != CUDA_SUCCESS) {
    return state.Failure(result, "Asking for the capture status of " +
                                     internal::StreamText(stream, state.ordinal()));
  }
  return status != CU_STREAM_CAPTURE_STATUS_NONE;
}

// REQUIRES: `stream` is not being captured, or its capture would be invalidated.
Expected<StreamId> IdOf(CudaState& state, const Stream& stream) {
  unsigned long long id = 0;
  const CUresult result = state.OnStream(
      stream, [&] { return state.api().StreamGetId(CudaDevice::Native(stream), &id); });
  if (result != CUDA_SUCCESS) {
    return state.Failure(result, "Asking for the identity of a stream of CUDA device " +
                                     std::to_string(state.ordinal()));
  }
  // CUDA's numbers start from 0; that one means unknown here.
  return id + 1;
}

// Looks at each event once, under one exchange of the capture mode. In the device's context: on a
// thread that has none an exchange may have no effect.
Expected<std::optional<size_t>> Sweep(CudaState& state, std::span<const Event* const> events) {
  std::optional<size_t> complete;
  size_t asked = 0;
  const CUresult result = state.InOwnContext([&] {
    const CaptureGuard guard(state.api());
    for (; asked < events.size(); ++asked) {
      const CUresult answer = state.api().EventQuery(NativeEvent(*events[asked]));
      if (answer == CUDA_SUCCESS) complete = asked;
      if (answer != CUDA_ERROR_NOT_READY) return answer;
    }
    return CUDA_SUCCESS;
  });
  if (result == CUDA_SUCCESS) return complete;
  return state.Failure(result, "Querying event " + std::to_string(asked) + " of " +
                                   std::to_string(events.size()) + " of CUDA device " +
                                   std::to_string(state.ordinal()));
}

// Whether `stream` is one of the device's primary context, which events and the default streams of
// this backend belong to. A process may have other contexts on the same device.
// REQUIRES: `stream` is not being captured.
Expected<void> CheckContext(CudaState& state, CUstream stream) {
  CUdevice device = 0;
  CUresult result =
      state.InAnyContext([&] { return state.api().StreamGetDevice(stream, &device); });
  if (result != CUDA_SUCCESS) return state.Failure(result, "Asking for the device of a stream");
  if (device != state.device()) {
    return InvalidArgument("The stream belongs to CUDA device " + std::to_string(device) +
                           " and was given to CUDA device " + std::to_string(state.ordinal()) +
                           ".");
  }
  CUcontext context = nullptr;
  CUgreenCtx green = nullptr;  // one that shares the multiprocessors of `context`, or none
  result = state.InAnyContext([&] { return state.api().StreamGetCtx(stream, &context, &green); });
  if (result != CUDA_SUCCESS) return state.Failure(result, "Asking for the context of a stream");
  if (context != state.context()) {
    return InvalidArgument("The stream belongs to another context of CUDA device " +
                           std::to_string(state.ordinal()) +
                           " than its primary one, which the CUDA runtime and this library use.");
  }
  return {};
}

}  // namespace

Expected<std::shared_ptr<CudaDevice>> CudaDevice::Create(int ordinal,
                                                         const CudaDeviceOptions& options) {
  Expected<std::shared_ptr<CudaState>> state = CudaState::Create(ordinal, options.max_pinned_bytes);
  if (!state) return ErrorOf(state);
  return std::make_shared<CudaDevice>(*std::move(state));
}

CudaDevice::CudaDevice(std::shared_ptr<CudaState> state) noexcept
    : state_(std::move(state)), identity_{state_.get(), state_->device_tag()} {}

CudaDevice::~CudaDevice() = default;

int CudaDevice::ordinal() const noexcept { return state_->ordinal(); }

std::string CudaDevice::name() const {
  std::array<char, 256> text = {};
  const auto most = static_cast<int>(text.size() - 1);
  if (state_->in_own_process()) {
    static_cast<void>(state_->api().DeviceGetName(text.data(), most, state_->device()));
  }
  return text.data();
}

// --- Streams ------------------------------------------------------------------------------------

Expected<Stream> CudaDevice::Wrap(CUstream_st* stream) const {
  if (Expected<void> ok = CheckProcess(identity_); !ok) return ErrorOf(ok);
  if (stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD) {
    return InvalidArgument(
        "The handle means a default stream, which is another one for each device or thread: use "
        "LegacyStream() or PerThreadStream().");
  }
  if (Expected<void> ok = Alive(*state_); !ok) return ErrorOf(ok);
  const Stream unknown = Stream::ForBackend(stream, StreamKind::kOrdinary, 0, identity_.device_tag);
  Expected<bool> capturing = IsCapturing(*state_, unknown);
  if (!capturing) return ErrorOf(capturing);
  if (*capturing) {
    return FailedPrecondition(
        "The stream is being captured, and asking for its identity would invalidate the capture: "
        "wrap it before.");
  }
  if (Expected<void> ok = CheckContext(*state_, stream); !ok) return ErrorOf(ok);
  Expected<StreamId> id = IdOf(*state_, unknown);
  if (!id) return ErrorOf(id);
  return Stream::ForBackend(stream, StreamKind::kOrdinary, *id, identity_.device_tag);
}

Stream CudaDevice::LegacyStream() const noexcept {
  return Stream::ForBackend(CU_STREAM_LEGACY, StreamKind::kLegacyDefault, 0, identity_.device_tag);
}

Stream CudaDevice::PerThreadStream() const noexcept {
  return Stream::ForBackend(CU_STREAM_PER_THREAD, StreamKind::kPerThreadDefault, 0,
                            identity_.device_tag);
}

Expected<StreamStatus> CudaDevice::Inspect(const Stream& stream) {
  if (Expected<void> ok = CheckInspect(identity_, stream); !ok) return ErrorOf(ok);
  if (Expected<void> ok = Alive(*state_); !ok) return ErrorOf(ok);
  Expected<bool> capturing = IsCapturing(*state_, stream);
  if (!capturing) return ErrorOf(capturing);
  if (*capturing) return StreamStatus{.capturing = true};
  if (stream.kind() == StreamKind::kOrdinary) return StreamStatus{.id = stream.id()};
  Expected<StreamId> id = IdOf(*state_, stream);
  if (!id) return ErrorOf(id);
  return StreamStatus{.id = *id};
}

// --- Memory -------------------------------------------------------------------------------------

Expected<PinnedBuffer> CudaDevice::AllocatePinned(uint64_t bytes) {
  if (Expected<void> ok = CheckAllocatePinned(identity_, bytes); !ok) return ErrorOf(ok);
  if (Expected<void> ok = Alive(*state_); !ok) return ErrorOf(ok);
  Expected<std::byte*> data = state_->TakePinned(bytes);
  if (!data) return ErrorOf(data);
  return PinnedBuffer::ForBackend(state_, *data, bytes);
}

Expected<void> CudaDevice::Trim() {
  if (Expected<void> ok = CheckProcess(identity_); !ok) return ok;
  if (Expected<void> ok = Alive(*state_); !ok) return ok;
  return state_->FreeIdle();
}

Expected<MemoryKind> CudaDevice::KindOf(std::span<const std::byte> memory) {
  if (Expected<void> ok = CheckProcess(identity_); !ok) return ErrorOf(ok);
  if (Expected<void> ok = Alive(*state_); !ok) return ErrorOf(ok);
  if (memory.data() == nullptr || memory.empty()) return MemoryKind::kPageable;
  const auto first = reinterpret_cast<CUdeviceptr>(memory.data());
  PointerAttributes known;
  const CUresult result =
      state_->InAnyContext([&] { return AskForAttributes(state_->api(), first, known); });
  if (result != CUDA_SUCCESS) {
    return state_->Failure(
        result, "Asking what memory " + internal::AddressText(memory.data()) + " lies in");
  }
  // Managed memory moves, so nothing is promised of its reads.
  if (known.managed != 0) return MemoryKind::kPageable;
  if (known.type == 0) return MemoryKind::kPageable;
  if (known.type != CU_MEMORYTYPE_HOST) {
    return InvalidArgument("The address " + internal::AddressText(memory.data()) +
                           " is one of device memory.");
  }
  return known.Hold(first, memory.size()) ? MemoryKind::kPinned : MemoryKind::kPageable;
}

uint64_t CudaDevice::MemorySpace() const noexcept { return internal::CudaMemorySpace(); }

// --- Copies -------------------------------------------------------------------------------------

Expected<void> CudaDevice::CopyAsync(DevicePtr destination, std::span<const std::byte> source,
                                     const Stream& stream) {
  if (Expected<void> ok = CheckCopyAsync(identity_, destination, source, stream); !ok) return ok;
  if (Expected<void> ok = Alive(*state_); !ok) return ok;
  if (source.empty()) return {};
  const CUresult result = state_->OnStream(stream, [&] {
    return state_->api().MemcpyHtoDAsync(destination.address(), source.data(), source.size(),
                                         Native(stream));
  });
  if (result == CUDA_SUCCESS) [[likely]]
    return {};
  return state_->Failure(result, internal::CopyText(destination, source, stream, ordinal()));
}

Expected<void> CudaDevice::CopyBatchAsync(std::span<const CopyEntry> entries,
                                          const Stream& stream) {
  if (Expected<void> ok = CheckCopyBatchAsync(identity_, entries, stream); !ok) return ok;
  if (Expected<void> ok = Alive(*state_); !ok) return ok;
  // Not only where a context is missing: on a thread without one a batch copy answers something
  // else than the other calls (measured on an H200).
  const CUresult result = state_->InOwnContext(
      [&] { return internal::CopyBatch(state_->api(), entries, Native(stream)); });
  if (result == CUDA_SUCCESS) [[likely]]
    return {};
  return state_->Failure(result, internal::BatchText(entries, stream, ordinal()));
}

// --- Events -------------------------------------------------------------------------------------

Expected<Event> CudaDevice::CreateEvent() {
  if (Expected<void> ok = CheckProcess(identity_); !ok) return ErrorOf(ok);
  if (Expected<void> ok = Alive(*state_); !ok) return ErrorOf(ok);
  CUevent event = nullptr;
  const CUresult result = state_->InOwnContext(
      [&] { return state_->api().EventCreate(&event, CU_EVENT_DISABLE_TIMING); });
  if (result != CUDA_SUCCESS) {
    return state_->Failure(result, "Creating an event of CUDA device " + std::to_string(ordinal()));
  }
  return Event::ForBackend(state_, reinterpret_cast<uint64_t>(event));
}

Expected<void> CudaDevice::Record(Event& event, const Stream& stream) {
  if (Expected<void> ok = CheckRecord(identity_, event, stream); !ok) return ok;
  if (Expected<void> ok = Alive(*state_); !ok) return ok;
  const CUresult result = state_->OnStream(
      stream, [&] { return state_->api().EventRecord(NativeEvent(event), Native(stream)); });
  if (result == CUDA_SUCCESS) [[likely]]
    return {};
  return state_->Failure(result,
                         "Recording an event on " + internal::StreamText(stream, ordinal()));
}

Expected<EventState> CudaDevice::Query(const Event& event) {
  if (Expected<void> ok = CheckQuery(identity_, event); !ok) return ErrorOf(ok);
  if (Expected<void> ok = Alive(*state_); !ok) return ErrorOf(ok);
  const Event* const only = &event;
  Expected<std::optional<size_t>> found = Sweep(*state_, std::span(&only, 1));
  if (!found) return ErrorOf(found);
  return found->has_value() ? EventState::kComplete : EventState::kPending;
}

Expected<std::optional<size_t>> CudaDevice::WaitAny(std::span<const Event* const> events,
                                                    const WaitBounds& bounds) {
  if (Expected<void> ok = CheckWaitAny(identity_, events); !ok) return ErrorOf(ok);
  const bool waits = bounds.timeout > std::chrono::nanoseconds(0);
  const std::chrono::nanoseconds start = waits ? Now() : std::chrono::nanoseconds(0);
  internal::Backoff backoff;
  while (true) {
    if (Expected<void> ok = Alive(*state_); !ok) return ErrorOf(ok);
    Expected<std::optional<size_t>> found = Sweep(*state_, events);
    if (!found || found->has_value() || !waits) return found;
    if (bounds.wakeup != nullptr && bounds.wakeup->Epoch() != bounds.seen) return std::nullopt;
    const std::chrono::nanoseconds waited = Now() - start;  // a deadline could overflow
    if (waited >= bounds.timeout) return std::nullopt;
    backoff.Pause(bounds.timeout - waited);
  }
}

Expected<void> CudaDevice::WaitEvent(const Stream& stream, const Event& event) {
  if (Expected<void> ok = CheckWaitEvent(identity_, stream, event); !ok) return ok;
  if (Expected<void> ok = Alive(*state_); !ok) return ok;
  const CUresult result = state_->OnStream(stream, [&] {
    return state_->api().StreamWaitEvent(Native(stream), NativeEvent(event), /*flags=*/0);
  });
  if (result == CUDA_SUCCESS) [[likely]]
    return {};
  return state_->Failure(
      result, "Making " + internal::StreamText(stream, ordinal()) + " wait for an event");
}

std::chrono::nanoseconds CudaDevice::Now() const noexcept {
  return std::chrono::steady_clock::now().time_since_epoch();
}

}  // namespace h2d
