#include "h2d/stager/internal/chunked_upload.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <string>

namespace h2d::internal {
namespace {

// From this size on the copy of a chunk takes so long that an event of its own is not felt.
constexpr uint64_t kEventBytes = uint64_t{1} << 20;

Unexpected Stopped() { return Unavailable("The upload was told to stop."); }

}  // namespace

Unexpected UploadError(const Error& error, uint64_t done, uint64_t total, bool touched) {
  Error result = error;
  if (touched) {
    result.message += " " + std::to_string(done) + " of " + std::to_string(total) +
                      " bytes were enqueued; the destination is incomplete.";
  }
  return Unexpected(std::move(result));
}

ChunkedUpload::ChunkedUpload(const UploadTools& tools, const SourceReader& reader, DevicePtr to,
                             const Stream& stream, StreamId id, const UploadControl& control)
    : tools_(tools),
      reader_(reader),
      to_(to),
      stream_(stream),
      control_(control),
      division_(SourceDivision::Of(reader, tools.options)),
      share_(tools.shares.Join(id, division_.most_chunks)) {}

ChunkedUpload::~ChunkedUpload() {
  DropAll();
  // Nobody may use the stream afterwards, and the shares that wait for a record of it would stay.
  tools_.shares.Record(*share_, stream_);
  tools_.shares.Leave(share_);
}

// Chunks that are being filled belong to the pool until it is done with them.
void ChunkedUpload::DropAll() noexcept {
  for (Chunk& chunk : filling_) tools_.pool.Cancel(chunk.job);
  while (!filling_.empty()) {
    tools_.pool.Finish(filling_.front().job);
    filling_.pop_front();
    tools_.shares.GiveBack(*share_);
  }
}

Expected<void> ChunkedUpload::Run() {
  Expected<void> ran = RunChunks();
  if (ran) return ran;
  return UploadError(ran.error(), enqueued_, reader_.bytes(), touched_);
}

Expected<void> ChunkedUpload::RunChunks() {
  const bool wakes = reader_.bytes() >= tools_.options.wake_bytes;
  while (enqueued_ < reader_.bytes()) {
    if (control_.cancel.stop_requested()) return Stopped();
    if (handed_out_ < reader_.bytes()) {
      const uint64_t bytes = std::min(division_.chunk_bytes, reader_.bytes() - handed_out_);
      auto lease = TakeChunk(bytes);
      if (!lease) return ErrorOf(lease);
      if (*lease) {
        filling_.emplace_back(std::move(**lease), reader_, handed_out_, division_.piece_bytes);
        tools_.pool.Submit(filling_.back().job, wakes);
        handed_out_ += bytes;
        continue;
      }
    }
    if (auto enqueued = Enqueue(filling_.front()); !enqueued) return enqueued;
  }
  return {};
}

// A chunk, or nothing when there is none now and one is being filled, which will give one back.
Expected<std::optional<SlotLease>> ChunkedUpload::TakeChunk(uint64_t bytes) {
  if (filling_.empty()) {
    tools_.shares.Record(*share_, stream_);  // or it might wait for chunks that no event stands for
    auto taken =
        tools_.shares.WaitToTake(*share_, bytes, tools_.options.wait_timeout, control_.cancel);
    if (!taken) return ErrorOf(taken);
  } else {
    auto taken = tools_.shares.TryTake(*share_);
    if (!taken) return ErrorOf(taken);
    if (!*taken) return std::optional<SlotLease>();
  }
  auto lease = AcquireFor(bytes);
  if (!lease || !*lease) tools_.shares.GiveBack(*share_);
  return lease;
}

Expected<std::optional<SlotLease>> ChunkedUpload::AcquireFor(uint64_t bytes) {
  if (!filling_.empty()) return tools_.ring.TryAcquire(bytes);
  auto lease = WaitForSlot(bytes);
  if (!lease && lease.error().code == ErrorCode::kResourceExhausted && ReviveRing())
    return WaitForSlot(bytes);
  return lease;
}

// In waits of the ring's own timeout, which is short: it knows of no stop.
Expected<std::optional<SlotLease>> ChunkedUpload::WaitForSlot(uint64_t bytes) {
  const std::chrono::nanoseconds timeout = tools_.options.wait_timeout;
  const std::chrono::nanoseconds start = tools_.device.Now();
  for (;;) {
    auto lease = tools_.ring.Acquire(bytes);
    if (lease) return std::optional<SlotLease>(std::move(*lease));
    if (lease.error().code != ErrorCode::kUnavailable) return ErrorOf(lease);
    if (control_.cancel.stop_requested()) return Stopped();
    if (tools_.device.Now() - start >= timeout) {
      return Unavailable("No memory for a chunk of " + std::to_string(bytes) +
                         " bytes became free within " + std::to_string(timeout.count()) + " ns.");
    }
  }
}

// Chunks whose records failed keep the ring's memory until a later record on their stream. The ring
// makes one for a copy of its own that finds no room: of the next byte of the source, which the
// next chunk brings again.
bool ChunkedUpload::ReviveRing() {
  if (tools_.ring.stats().slots_quarantined == 0) return false;
  std::byte next{};
  if (!reader_.Read(enqueued_, std::span(&next, 1))) return false;
  const Destination destination{.ptr = to_ + enqueued_, .count = 1, .element_bytes = 1};
  auto copied = tools_.ring.Copy(destination, std::span(&next, 1), stream_);
  touched_ = touched_ || copied || copied.error().code == ErrorCode::kDevice;
  return copied.has_value();
}

// Sends the oldest chunk, which leaves `filling_` whatever happens.
Expected<void> ChunkedUpload::Enqueue(Chunk& chunk) {
  tools_.pool.Finish(chunk.job);
  if (!chunk.job.result) return chunk.job.result;
  const uint64_t bytes = chunk.job.into.size();
  const Destination destination{.ptr = to_ + enqueued_, .count = bytes, .element_bytes = 1};
  auto sent = chunk.lease.Submit(destination, stream_);
  // Refused, it is still held; else it is in flight, or may be.
  const bool refused = static_cast<bool>(chunk.lease);
  filling_.pop_front();
  if (refused) {
    tools_.shares.GiveBack(*share_);
  } else {
    touched_ = true;
    const bool more = sent && enqueued_ + bytes < reader_.bytes();
    tools_.shares.InFlight(share_, stream_, more && bytes < kEventBytes);
  }
  if (!sent) return ErrorOf(sent);
  enqueued_ += bytes;
  if (control_.progress) {
    // The callback may wait for what was enqueued, and nobody else can record behind it meanwhile.
    tools_.shares.Record(*share_, stream_);
    control_.progress({enqueued_, reader_.bytes()});
  }
  return {};
}

}  // namespace h2d::internal
