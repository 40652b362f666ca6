// One upload through pinned chunks.
#ifndef H2D_STAGER_INTERNAL_CHUNKED_UPLOAD_H_
#define H2D_STAGER_INTERNAL_CHUNKED_UPLOAD_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "h2d/device/device.h"
#include "h2d/stager/internal/chunk_shares.h"
#include "h2d/stager/internal/fill_pool.h"
#include "h2d/stager/internal/source_division.h"
#include "h2d/stager/internal/source_reader.h"
#include "h2d/stager/pinned_stager.h"
#include "h2d/stager/upload_control.h"
#include "h2d/stager/uploader_options.h"

namespace h2d::internal {

// What an uploader's uploads share.
struct UploadTools {
  Device& device;
  PinnedStager& ring;
  ChunkShares& shares;
  FillPool& pool;
  const UploaderOptions& options;
};

// Ends an error of an upload of which `done` of `total` bytes were enqueued. `touched`: a copy of
// it was enqueued or may have been.
Unexpected UploadError(const Error& error, uint64_t done, uint64_t total, bool touched);

// The calling thread takes chunks, hands them to the pool to be filled, takes part in that, and
// enqueues them in the order of the source. All calls of the device are made by it, and which they
// are does not depend on how long the filling takes: as many chunks as may be are handed out before
// the oldest is waited for.
class ChunkedUpload {
 public:
  ChunkedUpload(const UploadTools& tools, const SourceReader& reader, DevicePtr to,
                const Stream& stream, StreamId id, const UploadControl& control);
  ~ChunkedUpload();
  ChunkedUpload(const ChunkedUpload&) = delete;
  ChunkedUpload& operator=(const ChunkedUpload&) = delete;

  Expected<void> Run();
  // Something else may have written the destination before: an error says that it is incomplete.
  void MarkTouched() noexcept { touched_ = true; }

 private:
  struct Chunk {
    Chunk(SlotLease taken, const SourceReader& reader, uint64_t at, uint64_t piece_bytes)
        : lease(std::move(taken)), job(reader, at, lease.bytes(), piece_bytes) {}
    SlotLease lease;
    FillJob job;
  };

  Expected<void> RunChunks();
  Expected<std::optional<SlotLease>> TakeChunk(uint64_t bytes);
  Expected<std::optional<SlotLease>> AcquireFor(uint64_t bytes);
  Expected<std::optional<SlotLease>> WaitForSlot(uint64_t bytes);
  bool ReviveRing();
  Expected<void> Enqueue(Chunk& chunk);
  void DropAll() noexcept;

  const UploadTools tools_;
  const SourceReader& reader_;
  const DevicePtr to_;
  const Stream stream_;
  const UploadControl& control_;
  const SourceDivision division_;
  const std::shared_ptr<ChunkShares::Upload> share_;
  std::deque<Chunk> filling_;  // in the order of the source; elements stay where they are
  uint64_t handed_out_ = 0;    // bytes, from the start of the source
  uint64_t enqueued_ = 0;
  bool touched_ = false;
};

}  // namespace h2d::internal

#endif  // H2D_STAGER_INTERNAL_CHUNKED_UPLOAD_H_
