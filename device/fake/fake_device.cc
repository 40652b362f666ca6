#include "h2d/device/fake/fake_device.h"

#include <utility>

#include "h2d/device/fake/internal/core.h"
#include "h2d/device/fake/internal/printable_name.h"

namespace h2d {

using fake_internal::PrintableName;

std::span<const std::byte> KernelMemory::Read(DevicePtr ptr, uint64_t bytes) const {
  return core_.KernelBytes(*static_cast<const fake_internal::Op*>(operation_), ptr, bytes, false);
}

std::span<std::byte> KernelMemory::Write(DevicePtr ptr, uint64_t bytes) const {
  return core_.KernelBytes(*static_cast<const fake_internal::Op*>(operation_), ptr, bytes, true);
}

std::shared_ptr<FakeDevice> FakeDevice::Create(FakeOptions options) {
  return std::shared_ptr<FakeDevice>(new FakeDevice(std::move(options)));
}

FakeDevice::FakeDevice(FakeOptions options)
    : core_(std::make_shared<fake_internal::Core>(std::move(options))) {}

FakeDevice::~FakeDevice() = default;

Expected<PinnedBuffer> FakeDevice::AllocatePinned(uint64_t bytes) {
  return core_->AllocatePinned(core_, bytes, false);
}
Expected<void> FakeDevice::Trim() { return core_->Trim(false); }
Expected<MemoryKind> FakeDevice::KindOf(std::span<const std::byte> memory) {
  return core_->KindOf(memory);
}
uint64_t FakeDevice::MemorySpace() const noexcept { return core_->tag(); }
Expected<void> FakeDevice::CopyAsync(DevicePtr destination, std::span<const std::byte> source,
                                     const Stream& stream) {
  return core_->CopyAsync(destination, source, stream);
}
Expected<void> FakeDevice::CopyBatchAsync(std::span<const CopyEntry> entries,
                                          const Stream& stream) {
  return core_->CopyBatchAsync(entries, stream);
}
Expected<Event> FakeDevice::CreateEvent() { return core_->CreateEvent(core_); }
Expected<void> FakeDevice::Record(Event& event, const Stream& stream) {
  return core_->Record(event, stream);
}
Expected<EventState> FakeDevice::Query(const Event& event) { return core_->Query(event, false); }
Expected<std::optional<size_t>> FakeDevice::WaitAny(std::span<const Event* const> events,
                                                    const WaitBounds& bounds) {
  return core_->WaitAny(events, bounds);
}
Expected<void> FakeDevice::WaitEvent(const Stream& stream, const Event& event) {
  return core_->WaitEvent(stream, event);
}
Expected<StreamStatus> FakeDevice::Inspect(const Stream& stream) { return core_->Inspect(stream); }
VirtualTime FakeDevice::Now() const noexcept { return core_->Now(); }
void FakeDevice::OnHostAccess(std::span<const std::byte> bytes, HostAccess access) noexcept {
  core_->OnHostAccess(bytes, access);
}

Expected<DevicePtr> FakeDevice::AllocateDevice(uint64_t bytes, std::string_view name) {
  return core_->AllocateDevice(bytes, PrintableName(name));
}
Expected<void> FakeDevice::FreeDevice(DevicePtr ptr) { return core_->FreeDevice(ptr); }
Expected<void> FakeDevice::Peek(DevicePtr ptr, std::span<std::byte> bytes) const {
  return core_->Peek(ptr, bytes);
}
Expected<void> FakeDevice::Poke(DevicePtr ptr, std::span<const std::byte> bytes) {
  return core_->Poke(ptr, bytes);
}
Expected<void> FakeDevice::ReadBack(DevicePtr ptr, std::span<std::byte> bytes,
                                    const Stream& stream) {
  return core_->ReadBack(ptr, bytes, stream);
}

Stream FakeDevice::NewStream(std::string_view name, StreamFlags flags) {
  return core_->NewStream(PrintableName(name), flags);
}
Expected<void> FakeDevice::DestroyStream(const Stream& stream) {
  return core_->DestroyStream(stream);
}
Stream FakeDevice::LegacyStream() const noexcept { return core_->LegacyStream(); }
Stream FakeDevice::PerThreadStream() const noexcept { return core_->PerThreadStream(); }
Expected<Stream> FakeDevice::Wrap(void* handle) const { return core_->Wrap(handle); }
Expected<void> FakeDevice::Hold(const Stream& stream) { return core_->Hold(stream); }
Expected<void> FakeDevice::Release(const Stream& stream) { return core_->Release(stream); }
Expected<bool> FakeDevice::CompleteNext(const Stream& stream) {
  return core_->CompleteNext(stream);
}
size_t FakeDevice::RunUntilIdle() { return core_->RunUntilIdle(); }
void FakeDevice::AdvanceTime(VirtualTime duration) { core_->AdvanceTime(duration); }
Expected<void> FakeDevice::SynchronizeStream(const Stream& stream) {
  return core_->SynchronizeStream(stream);
}
Expected<void> FakeDevice::SynchronizeDevice() { return core_->SynchronizeDevice(); }
Expected<void> FakeDevice::Synchronize(const Event& event) { return core_->Synchronize(event); }
Expected<EventState> FakeDevice::QueryStream(const Stream& stream) {
  return core_->QueryStream(stream);
}

Expected<void> FakeDevice::Launch(const Stream& stream, KernelSpec kernel) {
  kernel.name = PrintableName(kernel.name);
  return core_->Launch(stream, std::move(kernel));
}
Expected<void> FakeDevice::LaunchHostFunc(const Stream& stream, std::function<void()> function) {
  return core_->LaunchHostFunc(stream, std::move(function));
}
Expected<void> FakeDevice::BeginCapture(const Stream& stream, CaptureMode mode) {
  return core_->BeginCapture(stream, mode);
}
Expected<FakeGraph> FakeDevice::EndCapture(const Stream& stream) {
  return core_->EndCapture(stream);
}
Expected<void> FakeDevice::LaunchGraph(const FakeGraph& graph, const Stream& stream) {
  return core_->LaunchGraph(graph, stream);
}
CaptureMode FakeDevice::ExchangeCaptureMode(CaptureMode mode) {
  return core_->ExchangeCaptureMode(mode);
}
Expected<EventState> FakeDevice::RawQuery(const Event& event) { return core_->Query(event, true); }
Expected<StreamId> FakeDevice::RawStreamId(const Stream& stream) {
  return core_->RawStreamId(stream);
}
Expected<bool> FakeDevice::RawIsCapturing(const Stream& stream) {
  return core_->RawIsCapturing(stream);
}
Expected<PinnedBuffer> FakeDevice::RawAllocatePinned(uint64_t bytes) {
  return core_->AllocatePinned(core_, bytes, true);
}
Expected<void> FakeDevice::RawTrim() { return core_->Trim(true); }
void FakeDevice::Poison(Error error) { core_->Poison(std::move(error)); }

void FakeDevice::BeginOperation(uint64_t operation) { core_->BeginOperation(operation); }
void FakeDevice::NameTask(std::string_view name) { core_->NameTask(PrintableName(name)); }
void FakeDevice::NamePinned(const void* address, std::string_view name) {
  core_->NamePinned(address, PrintableName(name));
}
std::vector<Hazard> FakeDevice::hazards() const { return core_->Hazards(); }
uint64_t FakeDevice::hazard_count() const { return core_->HazardCount(); }
void FakeDevice::ClearHazards() { core_->ClearHazards(); }
FakeCounters FakeDevice::counters() const { return core_->Counters(); }
uint64_t FakeDevice::TraceHash() const { return core_->TraceHash(); }
std::string FakeDevice::Timeline(size_t columns) const { return core_->Timeline(columns); }
std::string FakeDevice::ChromeTrace() const { return core_->ChromeTrace(); }

}  // namespace h2d
