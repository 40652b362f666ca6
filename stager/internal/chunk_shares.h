// Divides the chunks of an uploader among its uploads.
#ifndef H2D_STAGER_INTERNAL_CHUNK_SHARES_H_
#define H2D_STAGER_INTERNAL_CHUNK_SHARES_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <stop_token>

#include "h2d/device/device.h"
#include "h2d/device/sync.h"
#include "h2d/stager/internal/release_core.h"

namespace h2d::internal {

// Counts who uses how many chunks; safety is the ring's, this is fairness. A chunk is in use from
// `TryTake` until it was given back or the device was seen to have read it; when that cannot be
// learnt, because no event could be recorded behind it, no longer than its enqueueing: a share that
// waits for a stream that nobody uses any more would be lost for ever. The chunks are divided
// among the streams that use any, or upload, and one that may come; a stream's share among its
// uploads. So a stream that stands still keeps its share and no more, whatever the number of
// uploads that went onto it. Each upload may use one chunk at least, when there is one.
//
// One event may stand for several chunks of an upload, up to a quarter of its part, while no other
// upload of its stream may wait for them.
//
// Thread-safe.
class ChunkShares {
 public:
  ChunkShares(std::shared_ptr<Device> device, uint32_t max_chunks);
  ChunkShares(const ChunkShares&) = delete;
  ChunkShares& operator=(const ChunkShares&) = delete;

  // One upload's part, between `Join` and `Leave`; its chunks in flight may outlast it.
  struct Upload {
    StreamId stream = 0;
    uint32_t most = 0;    // chunks that it wants at once, whatever its part is
    uint32_t in_use = 0;  // guarded by the mutex of the shares
    uint32_t part = 1;    // the same: how many it may use, as far as is known
  };
  std::shared_ptr<Upload> Join(StreamId stream, uint32_t most = ~uint32_t{0});
  void Leave(const std::shared_ptr<Upload>& upload) noexcept;

  // Whether the upload may use another chunk, which counts from then on. Asks the device what is
  // complete when the answer would be no. Errors: the device's, of this upload's stream.
  Expected<bool> TryTake(Upload& upload);
  // The same for a chunk of `bytes` bytes, and waits for it. Errors: also `kUnavailable` after
  // `timeout` and once `cancel` was requested.
  Expected<void> WaitToTake(Upload& upload, uint64_t bytes, std::chrono::nanoseconds timeout,
                            const std::stop_token& cancel);
  void GiveBack(Upload& upload) noexcept;
  // The upload's chunk was enqueued, or may have been: it is in use until `stream` has come past.
  // With `more`, others of the upload follow, and its record may be theirs.
  void InFlight(const std::shared_ptr<Upload>& upload, const Stream& stream, bool more = false);
  // Records for the chunks of the stream that still have no event, whichever upload's they are.
  void Record(Upload& upload, const Stream& stream);

 private:
  struct StreamUse {
    uint32_t uploads = 0;
    uint32_t in_use = 0;
    uint32_t unrecorded = 0;  // chunks in flight that no event stands for, or more
  };

  bool Take(Upload& upload) H2D_EXCLUDES(mutex_);
  void Uncount(Upload& upload) noexcept H2D_EXCLUDES(mutex_);
  bool MayLackAnEvent(const Upload& upload, bool more) H2D_EXCLUDES(mutex_);
  void DropIfUnused(StreamId stream) H2D_REQUIRES(mutex_);

  const std::shared_ptr<Device> device_;
  const uint32_t max_chunks_;
  Mutex mutex_;
  std::map<StreamId, StreamUse> streams_ H2D_GUARDED_BY(mutex_);
  uint32_t in_use_ H2D_GUARDED_BY(mutex_) = 0;
  // Tells when chunks were read. It ends first: what it holds counts down here.
  ReleaseCore tracker_;
};

}  // namespace h2d::internal

#endif  // H2D_STAGER_INTERNAL_CHUNK_SHARES_H_
