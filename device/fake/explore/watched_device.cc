#include "h2d/device/fake/explore/watched_device.h"

#include <utility>

namespace h2d {
namespace {

// Numbers for what a device knows by its own: apart from those of `Exploration::NameOf`.
constexpr uint64_t kAllocator = uint64_t{1} << 60;
constexpr uint64_t kStreams = uint64_t{2} << 60;
constexpr uint64_t kEvents = uint64_t{3} << 60;
constexpr uint64_t kNumberInDevice = 0xffff'ffff;  // the rest of a stream's id names the device

Footprint Allocates(const Exploration& exploration) {
  Footprint footprint;
  if (exploration.running() == Exploration::kNoTask) return footprint;
  footprint.Add(kAllocator, Touch::kWrite);
  return footprint;
}

Footprint Uses(const Exploration& exploration, const Stream& stream) {
  Footprint footprint;
  if (exploration.running() == Exploration::kNoTask) return footprint;
  footprint.Add(kStreams | (stream.id() & kNumberInDevice), Touch::kWrite);
  return footprint;
}

}  // namespace

std::shared_ptr<WatchedDevice> WatchedDevice::Create(std::shared_ptr<Device> inner,
                                                     Exploration& exploration,
                                                     std::shared_ptr<ExploredChoices> choices) {
  return std::shared_ptr<WatchedDevice>(
      new WatchedDevice(std::move(inner), exploration, std::move(choices)));
}

Expected<PinnedBuffer> WatchedDevice::AllocatePinned(uint64_t bytes) {
  exploration_.Announce(Allocates(exploration_));
  return inner_->AllocatePinned(bytes);
}

Expected<void> WatchedDevice::Trim() { return inner_->Trim(); }

Expected<MemoryKind> WatchedDevice::KindOf(std::span<const std::byte> memory) {
  exploration_.Announce({});
  return inner_->KindOf(memory);
}

Expected<void> WatchedDevice::CopyAsync(DevicePtr destination, std::span<const std::byte> source,
                                        const Stream& stream) {
  exploration_.Announce(Uses(exploration_, stream));
  return inner_->CopyAsync(destination, source, stream);
}

Expected<void> WatchedDevice::CopyBatchAsync(std::span<const CopyEntry> entries,
                                             const Stream& stream) {
  exploration_.Announce(Uses(exploration_, stream));
  return inner_->CopyBatchAsync(entries, stream);
}

Expected<Event> WatchedDevice::CreateEvent() {
  exploration_.Announce(Allocates(exploration_));
  return inner_->CreateEvent();
}

Expected<void> WatchedDevice::Record(Event& event, const Stream& stream) {
  Footprint footprint = Uses(exploration_, stream);
  footprint.Add(kEvents | event.raw(), Touch::kWrite);
  exploration_.Announce(std::move(footprint));
  return inner_->Record(event, stream);
}

Expected<EventState> WatchedDevice::Query(const Event& event) {
  Footprint footprint;
  footprint.Add(kEvents | event.raw(), Touch::kRead);
  exploration_.Announce(std::move(footprint));
  return inner_->Query(event);
}

Expected<std::optional<size_t>> WatchedDevice::WaitAny(std::span<const Event* const> events,
                                                       const WaitBounds& bounds) {
  Footprint footprint;
  for (const Event* event : events) footprint.Add(kEvents | event->raw(), Touch::kRead);
  if (bounds.wakeup != nullptr) {
    footprint.Add(exploration_.NameOf(bounds.wakeup), Touch::kRead);
  }
  exploration_.Announce(std::move(footprint));
  const bool waits = bounds.timeout.count() > 0;
  if (waits) choices_->SetWaiting(true);
  auto answer = inner_->WaitAny(events, bounds);
  if (waits) choices_->SetWaiting(false);
  return answer;
}

Expected<void> WatchedDevice::WaitEvent(const Stream& stream, const Event& event) {
  Footprint footprint = Uses(exploration_, stream);
  footprint.Add(kEvents | event.raw(), Touch::kRead);
  exploration_.Announce(std::move(footprint));
  return inner_->WaitEvent(stream, event);
}

Expected<StreamStatus> WatchedDevice::Inspect(const Stream& stream) {
  exploration_.Announce({});  // whether it is captured does not change
  return inner_->Inspect(stream);
}

void WatchedDevice::OnHostAccess(std::span<const std::byte> bytes, HostAccess access) noexcept {
  exploration_.Announce({});
  inner_->OnHostAccess(bytes, access);
}

}  // namespace h2d
