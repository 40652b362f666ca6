#include "h2d/stager/internal/uploader_core.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "h2d/device/checked_size.h"
#include "h2d/device/pinned_buffer.h"
#include "h2d/stager/internal/streaming_copy.h"
#include "h2d/stager/staging.h"

namespace h2d::internal {
namespace {

// The memory for small sources is that of so many of the largest of them, at most.
constexpr uint32_t kSmallSlots = 64;
// Slots of the ring beyond the chunks, for those whose records failed.
constexpr uint32_t kSpareSlots = 64;
// How long an upload waits in the ring before it looks whether it was told to stop.
constexpr std::chrono::milliseconds kRingWait{1};

Expected<void> CheckDestination(const Destination& destination, uint64_t bytes) {
  if (bytes == 0) return {};
  const auto what = [&] { return "A source of " + std::to_string(bytes) + " bytes"; };
  const auto room = CheckedBytes(destination.count, destination.element_bytes);
  if (!room || !CheckedSum(destination.ptr.address(), *room))
    return InvalidArgument("The size of the destination overflows 64 bits.");
  if (destination.ptr.is_null()) return InvalidArgument(what() + " has a null destination.");
  if (bytes > *room || bytes % destination.element_bytes != 0) {
    return InvalidArgument(what() + " does not fit a destination of " +
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

// What the chunks leave of the memory, for small sources; of use when two of the largest fit.
uint64_t SmallBytesOf(const UploaderOptions& options) {
  if (options.ring_bytes == 0) return 0;
  const uint64_t slot_bytes = SlotBytes(options.ring_bytes);
  const uint64_t spare =
      options.max_pinned_bytes - ChunksOf(options) * SlotBytes(options.chunk_bytes);
  const uint64_t slots = std::min<uint64_t>(spare / slot_bytes, kSmallSlots);
  return slots < 2 ? 0 : slots * slot_bytes;
}

StagerOptions RingOptions(const UploaderOptions& options) {
  StagerOptions ring;
  ring.slot_bytes = options.min_chunk_bytes;
  ring.initial_slots = 1;
  ring.max_slots = options.max_chunks + kSpareSlots;
  ring.max_pinned_bytes = options.max_pinned_bytes - SmallBytesOf(options);
  ring.wait_timeout = std::min<std::chrono::nanoseconds>(options.wait_timeout, kRingWait);
  // What the limits allow and the machine lacks is no error while chunks come back.
  ring.on_growth_failure = OnGrowthFailure::kWait;
  return ring;
}

StagerOptions SmallRingOptions(const UploaderOptions& options) {
  StagerOptions ring;
  ring.slot_bytes = options.ring_bytes;
  ring.initial_slots = 1;
  ring.max_slots = StagerOptions::kMaxSlots;
  ring.max_pinned_bytes = SmallBytesOf(options);
  ring.on_growth_failure = OnGrowthFailure::kWait;  // there are the chunks
  return ring;
}

}  // namespace

Expected<std::unique_ptr<UploaderCore>> UploaderCore::Create(std::shared_ptr<Device> device,
                                                             const UploaderOptions& options) {
  auto ring = PinnedStager::Create(device, RingOptions(options));
  if (!ring) return ErrorOf(ring);
  std::unique_ptr<PinnedStager> small_ring;
  if (SmallBytesOf(options) > 0) {
    auto made = PinnedStager::Create(device, SmallRingOptions(options));
    if (!made) return ErrorOf(made);
    small_ring = std::move(*made);
  }
  return std::make_unique<UploaderCore>(std::move(device), options, std::move(*ring),
                                        std::move(small_ring));
}

UploaderCore::UploaderCore(std::shared_ptr<Device> device, const UploaderOptions& options,
                           std::unique_ptr<PinnedStager> ring,
                           std::unique_ptr<PinnedStager> small_ring)
    : device_(device),
      options_(options),
      mirrors_(MirrorRegistry::Of(device->MemorySpace())),
      ring_(std::move(ring)),
      small_ring_(std::move(small_ring)),
      shares_(device, ChunksOf(options)),
      pool_(options.threads, options.awake_for),
      read_(std::make_shared<TicketState>(this)),
      sources_(std::move(device), options.release) {
  read_->reusable.Store(1);
}

Expected<MemoryKind> UploaderCore::KindOf(const UploadSource& source) {
  if (source.kind() == UploadSource::Kind::kPinned) return MemoryKind::kPinned;
  if (source.kind() != UploadSource::Kind::kMemory) return MemoryKind::kFileBacked;
  // Below this border pinned and pageable sources go the same way, and the question would take a
  // hundredth of theirs.
  if (source.bytes() < options_.policy.pageable_through_pinned_from_bytes)
    return MemoryKind::kPageable;
  return device_->KindOf(source.memory());
}

Expected<UploadTicket> UploaderCore::Upload(const Destination& destination, UploadSource& source,
                                            const Stream& stream, const UploadControl& control) {
  if (!in_own_process()) {
    return FailedPrecondition(
        "The uploader was made before this process was forked; a device does not survive a fork.");
  }
  if (auto fits = CheckDestination(destination, source.bytes()); !fits) return ErrorOf(fits);
  if (source.bytes() == 0) return UploadTicket(read_);
  SourceReader reader(source);
  reader.PrepareFor(pool_.threads());
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
  if (staging.through_pinned) {
    auto sent = SendThroughPinned(reader, source, destination.ptr, stream, status->id, control);
    if (!sent) return ErrorOf(sent);
    return UploadTicket(read_);
  }
  auto ticket = SendDirectly(source, destination.ptr, stream, status->id, control.cancel);
  if (ticket && control.progress) control.progress({source.bytes(), source.bytes()});
  return ticket;
}

Expected<void> UploaderCore::SendThroughPinned(const SourceReader& reader,
                                               const UploadSource& source, DevicePtr to,
                                               const Stream& stream, StreamId id,
                                               const UploadControl& control) {
  const uint64_t bytes = source.bytes();
  bool touched = false;
  if (small_ring_ != nullptr && bytes <= options_.ring_bytes &&
      source.kind() != UploadSource::Kind::kFile) {
    auto sent = TrySendSmall(source.memory(), to, stream, &touched);
    if (!sent) return UploadError(sent.error(), 0, bytes, /*touched=*/true);
    if (*sent && control.progress) control.progress({bytes, bytes});
    if (*sent) return {};
  }
  ChunkedUpload upload(
      {.device = *device_, .ring = *ring_, .shares = shares_, .pool = pool_, .options = options_},
      reader, to, stream, id, control);
  if (touched) upload.MarkTouched();
  return upload.Run();
}

// Answers false when there is no slot now. After an error the copy may have been enqueued, and when
// it answers false and `*touched` too. What is larger than the caches like is stored past them,
// into a slot of its own; where there is none, the stager's own copy, which names its stream, finds
// those that wait for a record there.
Expected<bool> UploaderCore::TrySendSmall(std::span<const std::byte> source, DevicePtr to,
                                          const Stream& stream, bool* touched) {
  const Destination destination{.ptr = to, .count = source.size(), .element_bytes = 1};
  if (source.size() >= kStreamingBytes) {
    auto lease = small_ring_->TryAcquire(source.size());
    if (!lease && lease.error().code != ErrorCode::kResourceExhausted) return ErrorOf(lease);
    if (lease && *lease) {
      StreamingCopy((*lease)->bytes().data(), source.data(), source.size());
      auto submitted = (*lease)->Submit(destination, stream);
      if (!submitted) return ErrorOf(submitted);
      return true;
    }
  }
  auto copied = small_ring_->TryCopy(destination, source, stream);
  if (copied) return copied->kind != CopyOutcome::Kind::kWouldBlock;
  // No slot can become free, or the device ran out of something else: the chunks may still serve.
  *touched = copied.error().code == ErrorCode::kResourceExhausted;
  if (*touched) return false;
  return ErrorOf(copied);
}

// Mirrors forget before the enqueueing and after it, as for every copy that passes them by. An
// event is recorded at once, whatever the policy: the caller may destroy the stream as soon as the
// call has returned. What can be done behind the copy is done there, beside it.
Expected<UploadTicket> UploaderCore::SendDirectly(UploadSource& source, DevicePtr to,
                                                  const Stream& stream, StreamId id,
                                                  const std::stop_token& cancel) {
  const uint64_t bytes = source.bytes();
  if (auto room = sources_.Reserve({.id = id, .capturing = false}, stream, bytes, cancel); !room)
    return ErrorOf(room);
  mirrors_->ForgetOverlapping(to, bytes);
  Expected<void> copied = device_->CopyAsync(to, source.memory(), stream);
  mirrors_->ForgetOverlapping(to, bytes);
  const auto ticket = std::make_shared<TicketState>(this);
  // Also when the call failed: the copy may run.
  Expected<void> flushed = sources_.PushAndFlush(
      HeldSource(DirectSource{std::exchange(source.owner(), std::nullopt), ticket}, bytes), id,
      stream, bytes);
  if (copied && flushed) return UploadTicket(ticket);
  Error error = copied ? flushed.error() : copied.error();
  error.message += " The copy of " + std::to_string(bytes) +
                   " bytes may have been enqueued: the destination is incomplete, and the device "
                   "may read the source until the stream was synchronised.";
  return Unexpected(std::move(error));
}

Expected<bool> UploaderCore::SourceReusable(const UploadTicket& ticket) {
  if (!in_own_process()) {
    return FailedPrecondition(
        "The uploader was made before this process was forked; a device does not survive a fork.");
  }
  if (ticket.state() == nullptr)
    return InvalidArgument("The ticket names no upload: it was moved from.");
  TicketState& state = *ticket.state();
  if (state.reusable.Load() != 0) return true;
  if (state.uploader != this) return InvalidArgument("The ticket is of another uploader's upload.");
  if (auto polled = sources_.Poll(); !polled) return ErrorOf(polled);
  return state.reusable.Load() != 0;
}

UploaderStats UploaderCore::Stats() const noexcept {
  UploaderStats stats{.chunks = ring_->stats(), .sources = sources_.Stats()};
  if (small_ring_ == nullptr) return stats;
  const StagerStats small = small_ring_->stats();
  // Those that found no slot went through chunks, and are counted there.
  StagerStats& all = stats.chunks;
  all.copies_asked += small.copies_issued + small.errors;
  all.copies_issued += small.copies_issued;
  all.errors += small.errors;
  all.bytes_asked += small.bytes_asked;
  all.bytes_sent += small.bytes_sent;
  all.growths += small.growths;
  all.growth_failures += small.growth_failures;
  all.slabs_retired += small.slabs_retired;
  all.slots_in_use += small.slots_in_use;
  all.slots_in_use_most += small.slots_in_use_most;
  all.slots_quarantined += small.slots_quarantined;
  all.pinned_bytes += small.pinned_bytes;
  all.pinned_bytes_most += small.pinned_bytes_most;
  return stats;
}

}  // namespace h2d::internal
