#include "h2d/stager/internal/chunked_upload.h"

#include <algorithm>
#include <span>
#include <string>

#include "h2d/device/checked_size.h"

namespace h2d::internal {
namespace {

// Each thread gets so many chunks of a source that is large enough: then copies run beside reads.
constexpr uint64_t kChunksOfEachThread = 4;
// Sizes of chunks are multiples of it, so that chunks start where copies like to start.
constexpr uint64_t kChunkUnitBytes = 4096;

}  // namespace

uint64_t ChunkBytesOf(uint64_t bytes, const UploaderOptions& options) noexcept {
  const uint64_t parts = kChunksOfEachThread * std::max(options.threads, 1U);
  const uint64_t part = RoundedUp(bytes / parts + 1, kChunkUnitBytes).value_or(bytes);
  return std::clamp(part, options.min_chunk_bytes, options.chunk_bytes);
}

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
      chunk_bytes_(ChunkBytesOf(reader.bytes(), tools.options)),
      share_(tools.shares.Join(id)) {}

ChunkedUpload::~ChunkedUpload() {
  DropAll();
  tools_.shares.Leave(share_);
}

// Chunks that are being filled belong to the pool until it is done with them.
void ChunkedUpload::DropAll() noexcept {
  while (!filling_.empty()) {
    tools_.pool.Wait(filling_.front().job);
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
  while (enqueued_ < reader_.bytes()) {
    if (control_.cancel.stop_requested()) return Unavailable("The upload was told to stop.");
    if (handed_out_ < reader_.bytes()) {
      const uint64_t bytes = std::min(chunk_bytes_, reader_.bytes() - handed_out_);
      auto lease = TakeChunk(bytes);
      if (!lease) return ErrorOf(lease);
      if (*lease) {
        Chunk& chunk = filling_.emplace_back(std::move(**lease));
        chunk.job.reader = &reader_;
        chunk.job.at = handed_out_;
        chunk.job.into = chunk.lease.bytes();
        tools_.pool.Submit(chunk.job);
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
  auto lease = tools_.ring.Acquire(bytes);
  if (!lease && lease.error().code == ErrorCode::kResourceExhausted && ReviveRing())
    lease = tools_.ring.Acquire(bytes);
  if (!lease) return ErrorOf(lease);
  return std::optional<SlotLease>(std::move(*lease));
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
  tools_.pool.Wait(chunk.job);
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
    tools_.shares.InFlight(share_, stream_);
  }
  if (!sent) return ErrorOf(sent);
  enqueued_ += bytes;
  if (control_.progress) control_.progress({enqueued_, reader_.bytes()});
  return {};
}

}  // namespace h2d::internal
