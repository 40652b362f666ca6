#include "h2d/stager/internal/uploader_core.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "h2d/device/checked_size.h"
#include "h2d/device/pinned_buffer.h"
#include "h2d/stager/staging.h"

namespace h2d::internal {
namespace {

// Slots of the ring beyond the chunks, for small sources.
constexpr uint32_t kSmallSlots = 64;

Expected<void> CheckDestination(const Destination& destination, uint64_t bytes) {
  if (bytes == 0) return {};
  const std::string what = "A source of " + std::to_string(bytes) + " bytes";
  const auto room = CheckedBytes(destination.count, destination.element_bytes);
  if (!room || !CheckedSum(destination.ptr.address(), *room))
    return InvalidArgument("The size of the destination overflows 64 bits.");
  if (destination.ptr.is_null()) return InvalidArgument(what + " has a null destination.");
  if (bytes > *room || bytes % destination.element_bytes != 0) {
    return InvalidArgument(what + " does not fit a destination of " +
                           std::to_string(destination.count) + " elements of " +
                           std::to_string(destination.element_bytes) + " bytes.");
  }
  return {};
}

// What the release queue holds for a source that the device reads: its owner, if it has one, and
// the ticket, which says so once the owner is gone.
struct DirectSource {
  std::optional<HeldSource> owner;
  std::shared_ptr<TicketState> ticket;

  void operator()() {
    owner.reset();
    ticket->reusable.Store(1);
  }
};

// What a slot of `bytes` bytes takes of the pinned memory.
uint64_t SlotBytes(uint64_t bytes) {
  return RoundedUp(bytes, PinnedBuffer::kAlignment).value_or(~uint64_t{0});
}

// As many chunks as may be, and as there is memory for: a share of memory that is not there would
// let one stream take that of the others.
uint32_t ChunksOf(const UploaderOptions& options) {
  const uint64_t with_memory = options.max_pinned_bytes / SlotBytes(options.chunk_bytes);
  return static_cast<uint32_t>(std::clamp<uint64_t>(with_memory, 1, options.max_chunks));
}

// Slots for small sources in the memory that the chunks leave.
uint32_t SmallSlotsOf(const UploaderOptions& options) {
  if (options.ring_bytes == 0) return 0;
  const uint64_t spare =
      options.max_pinned_bytes - ChunksOf(options) * SlotBytes(options.chunk_bytes);
  return static_cast<uint32_t>(
      std::min<uint64_t>(spare / SlotBytes(options.ring_bytes), kSmallSlots));
}

}  // namespace

UploaderCore::UploaderCore(std::shared_ptr<Device> device, const UploaderOptions& options,
                           std::unique_ptr<PinnedStager> ring)
    : device_(device),
      options_(options),
      mirrors_(MirrorRegistry::Of(device->MemorySpace())),
      ring_(std::move(ring)),
      sources_(device, options.release),
      shares_(device, ChunksOf(options)),
      pool_(options.threads) {
  // Two at least: one for a stream that stands still, one for the others.
  if (const uint32_t slots = SmallSlotsOf(options); slots >= 2)
    small_shares_.emplace(std::move(device), slots);
}

StagerOptions UploaderCore::RingOptions(const UploaderOptions& options) noexcept {
  StagerOptions ring;
  ring.slot_bytes = options.ring_bytes > 0 ? options.ring_bytes : options.min_chunk_bytes;
  ring.initial_slots = 1;
  ring.max_slots = options.max_chunks + kSmallSlots;
  ring.max_pinned_bytes = options.max_pinned_bytes;
  ring.wait_timeout = options.wait_timeout;
  // What the limits allow and the machine lacks is no error while chunks come back.
  ring.on_growth_failure = OnGrowthFailure::kWait;
  return ring;
}

Expected<MemoryKind> UploaderCore::KindOf(const UploadSource& source) {
  if (source.kind() != UploadSource::Kind::kMemory) return MemoryKind::kFileBacked;
  auto first = device_->KindOf(&source.memory().front());
  if (!first || *first == MemoryKind::kPageable) return first;
  auto last = device_->KindOf(&source.memory().back());
  if (!last) return last;
  return *first == *last ? *first : MemoryKind::kPageable;
}

Expected<UploadTicket> UploaderCore::Upload(const Destination& destination, UploadSource& source,
                                            const Stream& stream, const UploadControl& control) {
  if (auto fits = CheckDestination(destination, source.bytes()); !fits) return ErrorOf(fits);
  const auto ticket = std::make_shared<TicketState>(this);
  if (source.bytes() == 0) {
    ticket->reusable.Store(1);
    return UploadTicket(ticket);
  }
  const SourceReader reader(source);
  if (auto readable = reader.Check(); !readable) return ErrorOf(readable);
  auto status = device_->Inspect(stream);
  if (!status) return ErrorOf(status);
  if (status->capturing) {
    return FailedPrecondition(
        "The stream is being captured: a recorded copy would read its chunk again at every replay. "
        "Upload before the capture, or on another stream.");
  }
  if (control.cancel.stop_requested())
    return Unavailable("The upload was told to stop before anything was enqueued.");
  auto kind = KindOf(source);
  if (!kind) return ErrorOf(kind);
  const Staging staging = Staging::Of(source.bytes(), *kind, options_.policy);
  Expected<void> sent;
  if (staging.through_pinned) {
    sent = SendThroughPinned(reader, source, destination.ptr, stream, status->id, control);
    ticket->reusable.Store(1);
  } else {
    sent = SendDirectly(source, destination.ptr, stream, status->id, ticket);
    if (sent && control.progress) control.progress({source.bytes(), source.bytes()});
  }
  if (!sent) return ErrorOf(sent);
  return UploadTicket(ticket);
}

Expected<void> UploaderCore::SendThroughPinned(const SourceReader& reader,
                                               const UploadSource& source, DevicePtr to,
                                               const Stream& stream, StreamId id,
                                               const UploadControl& control) {
  if (source.bytes() <= options_.ring_bytes && source.kind() != UploadSource::Kind::kFile)
    return SendSmall(source, to, stream, id, control);
  ChunkedUpload upload(
      {.device = *device_, .ring = *ring_, .shares = shares_, .pool = pool_, .options = options_},
      reader, to, stream, id, control);
  return upload.Run();
}

Expected<void> UploaderCore::SendSmall(const UploadSource& source, DevicePtr to,
                                       const Stream& stream, StreamId id,
                                       const UploadControl& control) {
  const uint64_t bytes = source.bytes();
  ChunkShares& shares = small_shares_ ? *small_shares_ : shares_;
  const auto share = shares.Join(id);
  Expected<void> sent = shares.WaitToTake(*share, bytes, options_.wait_timeout, control.cancel);
  if (sent) {
    bool touched = false;
    sent = CopyThroughSlot(source, to, stream, &touched);
    if (touched) {
      shares.InFlight(share, stream);
    } else {
      shares.GiveBack(*share);
    }
    if (!sent) sent = UploadError(sent.error(), 0, bytes, touched);
  }
  shares.Leave(share);
  if (sent && control.progress) control.progress({bytes, bytes});
  return sent;
}

// `touched`: the copy was enqueued or may have been.
Expected<void> UploaderCore::CopyThroughSlot(const UploadSource& source, DevicePtr to,
                                             const Stream& stream, bool* touched) {
  const Destination destination{.ptr = to, .count = source.bytes(), .element_bytes = 1};
  auto lease = ring_->Acquire(source.bytes());
  if (lease) {
    std::memcpy(lease->bytes().data(), source.memory().data(), source.bytes());
    auto submitted = lease->Submit(destination, stream);
    *touched = !*lease;  // refused, it is still held
    if (!submitted) return ErrorOf(submitted);
    return {};
  }
  if (lease.error().code != ErrorCode::kResourceExhausted) return ErrorOf(lease);
  // Slots whose records failed keep the memory: a copy of the ring's own brings them back.
  auto copied = ring_->Copy(destination, source.memory(), stream);
  *touched = copied || copied.error().code == ErrorCode::kDevice;
  if (!copied) return ErrorOf(copied);
  return {};
}

// Mirrors forget before the enqueueing and after it, as for every copy that passes them by. An
// event is recorded at once, whatever the policy: the caller may destroy the stream as soon as the
// call has returned.
Expected<void> UploaderCore::SendDirectly(UploadSource& source, DevicePtr to, const Stream& stream,
                                          StreamId id, const std::shared_ptr<TicketState>& ticket) {
  const uint64_t bytes = source.bytes();
  if (auto room = sources_.Reserve({.id = id, .capturing = false}, stream, bytes); !room)
    return ErrorOf(room);
  mirrors_->ForgetOverlapping(to, bytes);
  Expected<void> copied = device_->CopyAsync(to, source.memory(), stream);
  mirrors_->ForgetOverlapping(to, bytes);
  // Also when the call failed: the copy may run.
  Expected<void> flushed = sources_.PushAndFlush(
      HeldSource(DirectSource{std::exchange(source.owner(), std::nullopt), ticket}, bytes), id,
      stream, bytes);
  if (copied && flushed) return {};
  Error error = copied ? flushed.error() : copied.error();
  error.message += " The copy of " + std::to_string(bytes) +
                   " bytes may have been enqueued: the destination is incomplete, and the device "
                   "may read the source until the stream was synchronised.";
  return Unexpected(std::move(error));
}

Expected<bool> UploaderCore::SourceReusable(const UploadTicket& ticket) {
  if (ticket.state() == nullptr)
    return InvalidArgument("The ticket names no upload: it was moved from.");
  TicketState& state = *ticket.state();
  if (state.reusable.Load() != 0) return true;
  if (state.uploader != this) return InvalidArgument("The ticket is of another uploader's upload.");
  if (auto polled = sources_.Poll(); !polled) return ErrorOf(polled);
  return state.reusable.Load() != 0;
}

UploaderStats UploaderCore::Stats() const noexcept {
  return {.chunks = ring_->stats(), .sources = sources_.Stats()};
}

}  // namespace h2d::internal
