#include "h2d/device/faulty/faulty_device.h"

#include <string>
#include <utility>

namespace h2d {
namespace {

constexpr size_t IndexOf(CallKind kind) noexcept { return static_cast<size_t>(kind); }

bool Strikes(const Fault& fault, CallKind kind, uint64_t call) noexcept {
  if (fault.kind != kind) return false;
  return fault.span == FaultSpan::kOnce ? call == fault.call : call >= fault.call;
}

Error ErrorWithMessage(const Fault& fault, uint64_t call) {
  Error error = fault.error;
  if (error.message.empty()) {
    error.message = "A fault was injected into call " + std::to_string(call) + " of " +
                    std::string(ToString(fault.kind)) + ".";
  }
  return error;
}

}  // namespace

std::shared_ptr<FaultyDevice> FaultyDevice::Create(std::shared_ptr<Device> inner) {
  if (inner == nullptr) return nullptr;
  return std::shared_ptr<FaultyDevice>(new FaultyDevice(std::move(inner)));
}

FaultyDevice::FaultyDevice(std::shared_ptr<Device> inner) noexcept : inner_(std::move(inner)) {}

void FaultyDevice::Inject(Fault fault) {
  const std::lock_guard lock(mutex_);
  faults_.push_back(std::move(fault));
}

void FaultyDevice::ClearFaults() {
  const std::lock_guard lock(mutex_);
  faults_.clear();
  sticky_error_.reset();
}

void FaultyDevice::SetHook(CallKind kind, Hook hook) {
  const std::lock_guard lock(mutex_);
  hooks_[IndexOf(kind)] = std::move(hook);
}

uint64_t FaultyDevice::CallCount(CallKind kind) const {
  const std::lock_guard lock(mutex_);
  return call_counts_[IndexOf(kind)];
}

uint64_t FaultyDevice::FaultCount() const {
  const std::lock_guard lock(mutex_);
  return fault_count_;
}

std::optional<FaultyDevice::Strike> FaultyDevice::Begin(CallKind kind) {
  // A lock that was held during the fork is held for ever in the child.
  if (process_ != CurrentProcess()) return std::nullopt;
  uint64_t call = 0;
  Hook hook;
  {
    const std::lock_guard lock(mutex_);
    call = ++call_counts_[IndexOf(kind)];
    hook = hooks_[IndexOf(kind)];
  }
  if (hook) hook(call);
  const std::lock_guard lock(mutex_);
  std::optional<Strike> strike = FindStrike(kind, call);
  if (strike) ++fault_count_;
  return strike;
}

std::optional<FaultyDevice::Strike> FaultyDevice::FindStrike(CallKind kind, uint64_t call) {
  if (sticky_error_) return Strike{FaultTiming::kBeforeCall, *sticky_error_};
  for (const Fault& fault : faults_) {
    if (!Strikes(fault, kind, call)) continue;
    Error error = ErrorWithMessage(fault, call);
    if (fault.span == FaultSpan::kSticky) sticky_error_ = error;
    return Strike{fault.timing, std::move(error)};
  }
  return std::nullopt;
}

template <class Call>
auto FaultyDevice::Through(CallKind kind, const Call& call) -> decltype(call()) {
  std::optional<Strike> strike = Begin(kind);
  if (!strike) return call();
  // The answer of a call that is struck after it is dropped: an error the device gave, too.
  if (strike->timing == FaultTiming::kAfterCall) static_cast<void>(call());
  return Unexpected(std::move(strike->error));
}

Expected<PinnedBuffer> FaultyDevice::AllocatePinned(uint64_t bytes) {
  return Through(CallKind::kAllocatePinned, [&] { return inner_->AllocatePinned(bytes); });
}

Expected<void> FaultyDevice::Trim() {
  return Through(CallKind::kTrim, [&] { return inner_->Trim(); });
}

Expected<MemoryKind> FaultyDevice::KindOf(std::span<const std::byte> memory) {
  return Through(CallKind::kKindOf, [&] { return inner_->KindOf(memory); });
}

uint64_t FaultyDevice::MemorySpace() const noexcept { return inner_->MemorySpace(); }

Expected<void> FaultyDevice::CopyAsync(DevicePtr destination, std::span<const std::byte> source,
                                       const Stream& stream) {
  return Through(CallKind::kCopyAsync,
                 [&] { return inner_->CopyAsync(destination, source, stream); });
}

Expected<void> FaultyDevice::CopyBatchAsync(std::span<const CopyEntry> entries,
                                            const Stream& stream) {
  return Through(CallKind::kCopyBatchAsync,
                 [&] { return inner_->CopyBatchAsync(entries, stream); });
}

Expected<Event> FaultyDevice::CreateEvent() {
  return Through(CallKind::kCreateEvent, [&] { return inner_->CreateEvent(); });
}

Expected<void> FaultyDevice::Record(Event& event, const Stream& stream) {
  return Through(CallKind::kRecord, [&] { return inner_->Record(event, stream); });
}

Expected<EventState> FaultyDevice::Query(const Event& event) {
  return Through(CallKind::kQuery, [&] { return inner_->Query(event); });
}

Expected<std::optional<size_t>> FaultyDevice::WaitAny(std::span<const Event* const> events,
                                                      const WaitBounds& bounds) {
  return Through(CallKind::kWaitAny, [&] { return inner_->WaitAny(events, bounds); });
}

Expected<void> FaultyDevice::WaitEvent(const Stream& stream, const Event& event) {
  return Through(CallKind::kWaitEvent, [&] { return inner_->WaitEvent(stream, event); });
}

Expected<StreamStatus> FaultyDevice::Inspect(const Stream& stream) {
  return Through(CallKind::kInspect, [&] { return inner_->Inspect(stream); });
}

std::chrono::nanoseconds FaultyDevice::Now() const noexcept { return inner_->Now(); }

void FaultyDevice::OnHostAccess(std::span<const std::byte> bytes, HostAccess access) noexcept {
  inner_->OnHostAccess(bytes, access);
}

}  // namespace h2d
