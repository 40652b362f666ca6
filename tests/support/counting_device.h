// Counts what the library asks of a device, for each host thread.
#ifndef H2D_TESTS_SUPPORT_COUNTING_DEVICE_H_
#define H2D_TESTS_SUPPORT_COUNTING_DEVICE_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>

#include "h2d/device/device.h"

namespace h2d::testing {

struct DeviceCalls {
  uint64_t allocations = 0;  // of pinned memory
  uint64_t trims = 0;
  uint64_t copies = 0;
  uint64_t batches = 0;
  uint64_t events = 0;
  uint64_t records = 0;
  uint64_t queries = 0;
  uint64_t waits = 0;  // that may block
  uint64_t looks = 0;  // `WaitAny` that may not
  uint64_t stream_waits = 0;
  uint64_t inspections = 0;
  uint64_t announcements = 0;

  uint64_t all() const noexcept {
    return allocations + trims + copies + batches + events + records + queries + waits + looks +
           stream_waits + inspections + announcements;
  }
};

DeviceCalls operator-(const DeviceCalls& after, const DeviceCalls& before) noexcept;

// What the calling thread asked of any counting device so far.
DeviceCalls& CallsOfThisThread() noexcept;

// Passes every call on to `inner`.
class CountingDevice final : public Device {
 public:
  explicit CountingDevice(std::shared_ptr<Device> inner) : inner_(std::move(inner)) {}

  Expected<PinnedBuffer> AllocatePinned(uint64_t bytes) override {
    ++CallsOfThisThread().allocations;
    return inner_->AllocatePinned(bytes);
  }
  Expected<void> Trim() override {
    ++CallsOfThisThread().trims;
    return inner_->Trim();
  }
  Expected<MemoryKind> KindOf(std::span<const std::byte> memory) override {
    return inner_->KindOf(memory);
  }
  uint64_t MemorySpace() const noexcept override { return inner_->MemorySpace(); }
  Expected<void> CopyAsync(DevicePtr destination, std::span<const std::byte> source,
                           const Stream& stream) override {
    ++CallsOfThisThread().copies;
    return inner_->CopyAsync(destination, source, stream);
  }
  Expected<void> CopyBatchAsync(std::span<const CopyEntry> entries, const Stream& stream) override {
    ++CallsOfThisThread().batches;
    return inner_->CopyBatchAsync(entries, stream);
  }
  Expected<Event> CreateEvent() override {
    ++CallsOfThisThread().events;
    return inner_->CreateEvent();
  }
  Expected<void> Record(Event& event, const Stream& stream) override {
    ++CallsOfThisThread().records;
    return inner_->Record(event, stream);
  }
  Expected<EventState> Query(const Event& event) override {
    ++CallsOfThisThread().queries;
    return inner_->Query(event);
  }
  Expected<std::optional<size_t>> WaitAny(std::span<const Event* const> events,
                                          const WaitBounds& bounds) override {
    ++(bounds.timeout.count() > 0 ? CallsOfThisThread().waits : CallsOfThisThread().looks);
    return inner_->WaitAny(events, bounds);
  }
  Expected<void> WaitEvent(const Stream& stream, const Event& event) override {
    ++CallsOfThisThread().stream_waits;
    return inner_->WaitEvent(stream, event);
  }
  Expected<StreamStatus> Inspect(const Stream& stream) override {
    ++CallsOfThisThread().inspections;
    return inner_->Inspect(stream);
  }
  std::chrono::nanoseconds Now() const noexcept override { return inner_->Now(); }
  void OnHostAccess(std::span<const std::byte> bytes, HostAccess access) noexcept override {
    ++CallsOfThisThread().announcements;
    inner_->OnHostAccess(bytes, access);
  }

 private:
  std::shared_ptr<Device> inner_;
};

}  // namespace h2d::testing

#endif  // H2D_TESTS_SUPPORT_COUNTING_DEVICE_H_
