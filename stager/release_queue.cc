#include "h2d/stager/release_queue.h"

#include <utility>

#include "h2d/stager/internal/release_core.h"

namespace h2d {

ReleaseQueue::ReleaseQueue(std::unique_ptr<internal::ReleaseCore> core) noexcept
    : core_(std::move(core)) {}

// In a forked child a lock may be held for ever, by a thread that is not there.
ReleaseQueue::~ReleaseQueue() {
  if (!core_->in_own_process()) static_cast<void>(core_.release());
}

Expected<std::unique_ptr<ReleaseQueue>> ReleaseQueue::Create(std::shared_ptr<Device> device,
                                                             const ReleaseQueueOptions& options) {
  if (device == nullptr) return InvalidArgument("The device of a release queue is null.");
  if (auto valid = Validate(options); !valid) return ErrorOf(valid);
  auto core = std::make_unique<internal::ReleaseCore>(std::move(device), options);
  return std::unique_ptr<ReleaseQueue>(new ReleaseQueue(std::move(core)));
}

ReleaseQueue::Room::Room(Room&& other) noexcept
    : core_(std::exchange(other.core_, nullptr)),
      stream_(other.stream_),
      id_(other.id_),
      thread_(other.thread_),
      bytes_(other.bytes_) {}

ReleaseQueue::Room::~Room() {
  if (core_ != nullptr && core_->in_own_process()) core_->GiveBack(id_, bytes_);
}

Expected<ReleaseQueue::Room> ReleaseQueue::Reserve(uint64_t bytes, const Stream& stream) {
  auto named = core_->Name(stream);
  if (!named) return ErrorOf(named);
  if (auto reserved = core_->Reserve(*named, stream, bytes); !reserved) return ErrorOf(reserved);
  return Room(*core_, stream, named->id, bytes);
}

// Without a question to the device, which might fail.
bool ReleaseQueue::Room::IsOf(const Stream& stream) const noexcept {
  if (stream.kind() != stream_.kind() || stream.id() != stream_.id() ||
      stream.device_tag() != stream_.device_tag()) {
    return false;
  }
  return stream.kind() != StreamKind::kPerThreadDefault || std::this_thread::get_id() == thread_;
}

Expected<void> ReleaseQueue::Push(HeldSource&& source, const Stream& stream, Room&& room) {
  if (!source) return InvalidArgument("An empty source was pushed.");
  if (room.core_ != core_.get())
    return InvalidArgument("The room was used before, or is another queue's.");
  if (!core_->in_own_process()) return FailedPrecondition("The room was taken before a fork.");
  if (!room.IsOf(stream)) {
    return InvalidArgument(
        "The room was reserved for another stream, by which the source would be released while the "
        "device may still read it.");
  }
  room.core_ = nullptr;
  core_->Push(std::move(source), room.id_, stream, room.bytes_);
  return {};
}

Expected<void> ReleaseQueue::Push(HeldSource&& source, const Stream& stream) {
  if (!source) return InvalidArgument("An empty source was pushed.");
  auto room = Reserve(source.bytes(), stream);
  if (!room) return ErrorOf(room);
  return Push(std::move(source), stream, std::move(*room));
}

Expected<FlushOutcome> ReleaseQueue::Flush(const Stream& stream) { return core_->Flush(stream); }

Expected<bool> ReleaseQueue::ShouldFlush(const Stream& stream) {
  return core_->ShouldFlush(stream);
}

Expected<uint64_t> ReleaseQueue::Poll() { return core_->Poll(); }

Expected<void> ReleaseQueue::Drain(std::chrono::nanoseconds timeout) {
  return core_->Drain(timeout);
}

ReleaseQueueStats ReleaseQueue::stats() const noexcept { return core_->Stats(); }

}  // namespace h2d
