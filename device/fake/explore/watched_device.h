// Tells an exploration what each call of a device touches.
#ifndef H2D_DEVICE_FAKE_EXPLORE_WATCHED_DEVICE_H_
#define H2D_DEVICE_FAKE_EXPLORE_WATCHED_DEVICE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "h2d/device/device.h"
#include "h2d/device/fake/explore/exploration.h"
#include "h2d/device/fake/explore/explored_choices.h"

namespace h2d {

// Passes every call on to a simulated device. Calls conflict when they use the same stream or the
// same event, or allocate. Accesses to memory do not: the detector reports two of them that nothing
// orders in whichever order they came. Nor does the clock: the time that a call takes moves
// deadlines and nothing else.
class WatchedDevice final : public Device {
 public:
  // `exploration` outlives it.
  static std::shared_ptr<WatchedDevice> Create(std::shared_ptr<Device> inner,
                                               Exploration& exploration,
                                               std::shared_ptr<ExploredChoices> choices);

  Expected<PinnedBuffer> AllocatePinned(uint64_t bytes) override;
  Expected<void> Trim() override;
  Expected<MemoryKind> KindOf(std::span<const std::byte> memory) override;
  uint64_t MemorySpace() const noexcept override { return inner_->MemorySpace(); }
  Expected<void> CopyAsync(DevicePtr destination, std::span<const std::byte> source,
                           const Stream& stream) override;
  Expected<void> CopyBatchAsync(std::span<const CopyEntry> entries, const Stream& stream) override;
  Expected<Event> CreateEvent() override;
  Expected<void> Record(Event& event, const Stream& stream) override;
  Expected<EventState> Query(const Event& event) override;
  Expected<std::optional<size_t>> WaitAny(std::span<const Event* const> events,
                                          const WaitBounds& bounds) override;
  Expected<void> WaitEvent(const Stream& stream, const Event& event) override;
  Expected<StreamStatus> Inspect(const Stream& stream) override;
  std::chrono::nanoseconds Now() const noexcept override { return inner_->Now(); }
  void OnHostAccess(std::span<const std::byte> bytes, HostAccess access) noexcept override;

 private:
  WatchedDevice(std::shared_ptr<Device> inner, Exploration& exploration,
                std::shared_ptr<ExploredChoices> choices)
      : inner_(std::move(inner)), exploration_(exploration), choices_(std::move(choices)) {}

  const std::shared_ptr<Device> inner_;
  Exploration& exploration_;
  const std::shared_ptr<ExploredChoices> choices_;
};

}  // namespace h2d

#endif  // H2D_DEVICE_FAKE_EXPLORE_WATCHED_DEVICE_H_
