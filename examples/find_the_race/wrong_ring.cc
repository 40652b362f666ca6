#include "wrong_ring.h"

#include <algorithm>
#include <chrono>

using h2d::Expected;

Expected<WrongRing> WrongRing::Create(std::shared_ptr<h2d::Device> device, size_t slots) {
  WrongRing ring(std::move(device));
  for (size_t i = 0; i < slots; ++i) {
    auto memory = ring.device_->AllocatePinned(kSlotBytes);
    if (!memory) return ErrorOf(memory);
    auto sent = ring.device_->CreateEvent();
    if (!sent) return ErrorOf(sent);
    ring.slots_.push_back({std::move(*memory), std::move(*sent)});
  }
  return ring;
}

Expected<void> WrongRing::Send(std::span<const std::byte> values, h2d::DevicePtr to,
                               const h2d::Stream& stream) {
  while (next_ - done_ == slots_.size()) {
    // Every slot is in flight. When any copy is complete, so are all that were sent before it.
    std::vector<const h2d::Event*> in_flight;
    for (size_t copy = done_; copy < next_; ++copy) {
      in_flight.push_back(&slots_[copy % slots_.size()].sent);
    }
    auto complete = device_->WaitAny(in_flight, {.timeout = std::chrono::seconds(10)});
    if (!complete) return ErrorOf(complete);
    if (*complete) done_ += **complete + 1;
  }
  Slot& slot = slots_[next_++ % slots_.size()];
  const std::span<std::byte> bytes = slot.memory.bytes().first(values.size());
  device_->OnHostAccess(bytes, h2d::HostAccess::kWrite);
  std::copy(values.begin(), values.end(), bytes.begin());
  if (auto copied = device_->CopyAsync(to, bytes, stream); !copied) return copied;
  return device_->Record(slot.sent, stream);
}
