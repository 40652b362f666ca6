#include "h2d/stager/internal/uploader_core.h"

#include <optional>
#include <span>
#include <string>
#include <utility>

#include "h2d/device/checked_size.h"
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

}  // namespace

UploaderCore::UploaderCore(std::shared_ptr<Device> device, const UploaderOptions& options,
                           std::unique_ptr<PinnedStager> ring,
                           std::unique_ptr<ReleaseQueue> sources)
    : device_(device),
      options_(options),
      mirrors_(MirrorRegistry::Of(device->MemorySpace())),
      ring_(std::move(ring)),
      sources_(std::move(sources)),
      shares_(std::move(device), options.max_chunks),
      pool_(std::make_unique<FillPool>(options.threads)) {}

UploaderCore::~UploaderCore() {
  // A forked child has no threads to join.
  if (process_ != CurrentProcess()) static_cast<void>(pool_.release());
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
  const auto ticket = std::make_shared<TicketState>(stream);
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
    sent = SendDirectly(source, destination.ptr, stream, staging.flush_after, ticket);
    if (sent && control.progress) control.progress({source.bytes(), source.bytes()});
  }
  if (!sent) return ErrorOf(sent);
  return UploadTicket(ticket);
}

Expected<void> UploaderCore::SendThroughPinned(const SourceReader& reader,
                                               const UploadSource& source, DevicePtr to,
                                               const Stream& stream, StreamId id,
                                               const UploadControl& control) {
  const uint64_t bytes = source.bytes();
  if (bytes <= options_.ring_bytes && source.kind() != UploadSource::Kind::kFile) {
    auto copied = ring_->Copy(Destination{.ptr = to, .count = bytes, .element_bytes = 1},
                              source.memory(), stream);
    if (!copied) {
      return UploadError(copied.error(), 0, bytes, copied.error().code == ErrorCode::kDevice);
    }
    if (control.progress) control.progress({bytes, bytes});
    return {};
  }
  ChunkedUpload upload(
      {.device = *device_, .ring = *ring_, .shares = shares_, .pool = *pool_, .options = options_},
      reader, to, stream, id, control);
  return upload.Run();
}

// Mirrors forget before the enqueueing and after it, as for every copy that passes them by.
Expected<void> UploaderCore::SendDirectly(UploadSource& source, DevicePtr to, const Stream& stream,
                                          bool flush_after,
                                          const std::shared_ptr<TicketState>& ticket) {
  const uint64_t bytes = source.bytes();
  auto room = sources_->Reserve(bytes, stream);
  if (!room) return ErrorOf(room);
  mirrors_->ForgetOverlapping(to, bytes);
  Expected<void> copied = device_->CopyAsync(to, source.memory(), stream);
  mirrors_->ForgetOverlapping(to, bytes);
  // Also when the call failed: the copy may run.
  sources_->Push(
      HeldSource(DirectSource{std::exchange(source.owner(), std::nullopt), ticket}, bytes), stream,
      std::move(*room));
  // A flush that failed is due, and made again by whoever asks next.
  if (flush_after) static_cast<void>(sources_->Flush(stream));
  if (!copied) return UploadError(copied.error(), 0, bytes, true);
  return {};
}

Expected<bool> UploaderCore::SourceReusable(const UploadTicket& ticket) {
  TicketState& state = *ticket.state();
  if (state.reusable.Load() != 0) return true;
  if (auto flushed = sources_->Flush(state.stream); !flushed) return ErrorOf(flushed);
  if (auto polled = sources_->Poll(); !polled) return ErrorOf(polled);
  return state.reusable.Load() != 0;
}

UploaderStats UploaderCore::Stats() const noexcept {
  return {.chunks = ring_->stats(), .sources = sources_->stats()};
}

}  // namespace h2d::internal
