#include "h2d/stager/internal/chunk_shares.h"

#include <algorithm>
#include <string>
#include <utility>

namespace h2d::internal {

ChunkShares::ChunkShares(std::shared_ptr<Device> device, uint32_t max_chunks)
    : device_(device),
      max_chunks_(max_chunks),
      // An event for each chunk, and no limit of its own: the chunks are limited.
      tracker_(std::move(device), ReleaseCore::Unlimited(/*flush_items=*/1),
               ReleaseCore::OnFailedRecord::kLetGo) {}

std::shared_ptr<ChunkShares::Upload> ChunkShares::Join(StreamId stream, uint32_t most) {
  auto upload = std::make_shared<Upload>(Upload{.stream = stream, .most = most});
  MutexLock lock(mutex_);
  ++streams_[stream].uploads;
  return upload;
}

void ChunkShares::Leave(const std::shared_ptr<Upload>& upload) noexcept {
  {
    MutexLock lock(mutex_);
    --streams_[upload->stream].uploads;
    DropIfUnused(upload->stream);
  }
  tracker_.Wake();  // the shares of the others have grown
}

void ChunkShares::DropIfUnused(StreamId stream) {
  const auto found = streams_.find(stream);
  if (found->second.uploads == 0 && found->second.in_use == 0) streams_.erase(found);
}

bool ChunkShares::Take(Upload& upload) {
  MutexLock lock(mutex_);
  StreamUse& use = streams_[upload.stream];
  const auto streams = static_cast<uint32_t>(streams_.size());
  const uint32_t of_stream = std::max(max_chunks_ / (streams + 1), 1U);
  const uint32_t of_upload = std::max(std::min(of_stream / use.uploads, upload.most), 1U);
  upload.part = of_upload;
  if (in_use_ >= max_chunks_ || use.in_use >= of_stream || upload.in_use >= of_upload) return false;
  ++in_use_;
  ++use.in_use;
  ++upload.in_use;
  return true;
}

void ChunkShares::Uncount(Upload& upload) noexcept {
  {
    MutexLock lock(mutex_);
    --in_use_;
    --upload.in_use;
    --streams_[upload.stream].in_use;
    DropIfUnused(upload.stream);
  }
  tracker_.Wake();
}

Expected<bool> ChunkShares::TryTake(Upload& upload) {
  if (Take(upload)) return true;
  auto polled = tracker_.Poll(upload.stream);
  if (!polled) return ErrorOf(polled);
  return Take(upload);
}

Expected<void> ChunkShares::WaitToTake(Upload& upload, uint64_t bytes,
                                       std::chrono::nanoseconds timeout,
                                       const std::stop_token& cancel) {
  if (Take(upload)) return {};
  const std::chrono::nanoseconds start = device_->Now();
  const std::stop_callback wake(cancel, [this] { tracker_.Wake(); });
  for (;;) {
    // Read before trying: whatever comes back after the try moves the epoch on.
    const uint64_t epoch = tracker_.Epoch();
    auto taken = TryTake(upload);
    if (!taken) return ErrorOf(taken);
    if (*taken) return {};
    if (cancel.stop_requested()) return Unavailable("The upload was told to stop.");
    const std::chrono::nanoseconds left = timeout - (device_->Now() - start);
    if (left <= std::chrono::nanoseconds(0)) {
      return Unavailable("No chunk of " + std::to_string(bytes) + " bytes became free within " +
                         std::to_string(timeout.count()) + " ns.");
    }
    if (auto waited = tracker_.Wait(left, epoch); !waited) return waited;
  }
}

void ChunkShares::GiveBack(Upload& upload) noexcept { Uncount(upload); }

// Where the chunk may not, the record of it is that of all before it.
bool ChunkShares::MayLackAnEvent(const Upload& upload, bool more) {
  MutexLock lock(mutex_);
  uint32_t& unrecorded = streams_.find(upload.stream)->second.unrecorded;
  const bool may = more && unrecorded + 1 < upload.part / 4;
  if (!may) unrecorded = 0;
  return may;
}

void ChunkShares::InFlight(const std::shared_ptr<Upload>& upload, const Stream& stream, bool more) {
  const ReleaseCore::Named named{.id = upload->stream, .capturing = false};
  auto counted = tracker_.Reserve(named, stream, 0);
  if (!counted) return Uncount(*upload);  // not reached: there is no limit
  HeldSource share([this, upload] { Uncount(*upload); }, 0);
  if (!MayLackAnEvent(*upload, more)) {
    // A failed record lets it go.
    static_cast<void>(tracker_.PushAndFlush(std::move(share), upload->stream, stream, 0));
    return;
  }
  tracker_.PushOpen(std::move(share), upload->stream, 0);
  {
    // Counted after the push: at 0 there is none. An upload that joins later records before it
    // waits; one that has joined may be waiting.
    MutexLock lock(mutex_);
    StreamUse& use = streams_.find(upload->stream)->second;
    ++use.unrecorded;
    if (use.uploads == 1) return;
  }
  Record(*upload, stream);
}

void ChunkShares::Record(Upload& upload, const Stream& stream) {
  {
    MutexLock lock(mutex_);
    if (std::exchange(streams_.find(upload.stream)->second.unrecorded, 0) == 0) return;
  }
  static_cast<void>(tracker_.FlushKnown(upload.stream, stream));
}

}  // namespace h2d::internal
