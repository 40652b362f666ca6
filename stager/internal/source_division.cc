#include "h2d/stager/internal/source_division.h"

#include <algorithm>
#include <limits>

#include "h2d/device/checked_size.h"

namespace h2d::internal {
namespace {

// A source has so many chunks at least, or the copies of them would not run beside the reading, and
// no more as long as they are small: each enqueueing costs the calling thread 2 to 6 us (16 MiB by
// one thread took 1.12 ms in chunks of 1 MiB and 1.43 in chunks of 256 KiB, on an H200 host).
constexpr uint64_t kLeastChunksOfASource = 4;
constexpr uint64_t kSmallChunkBytes = uint64_t{1} << 20;
// The copy of the last chunk is all that is not hidden behind the reading: of a large source it is
// to be no more than this part.
constexpr uint64_t kChunksOfALargeSource = 16;
// Sizes of chunks are multiples of it, so that chunks start where copies like to start.
constexpr uint64_t kChunkUnitBytes = 4096;
// At most; pieces are counted in 32 bits.
constexpr uint64_t kPiecesOfAChunk = uint64_t{1} << 16;

// What many threads read should still be in the cache that they share when the device reads it, and
// again when it is written anew: in chunks of 4 MiB, after other work had passed through that
// cache, 1 GiB came at 0.90 of the link's rate with 8 chunks, at 0.87 with 12 and at 0.78 with 16
// (on an H200 host).
constexpr uint64_t kCachedBytes = uint64_t{32} << 20;
// Threads that read neighbouring pieces of a file in the page cache are slow, at times, unless the
// pieces are large: 1 GiB in pieces of 256 KiB came at 20 to 52 GB/s, in pieces of 1 MiB at 45 to
// 53; 64 MiB in pieces of 128 KiB at 23, of 1 MiB at 40. Chunks of a few of them leave all threads
// something to read while others are in flight.
constexpr uint64_t kFilePieceBytes = uint64_t{1} << 20;
constexpr uint64_t kPiecesOfAFileChunk = 4;

uint64_t ChunkBytesOf(const SourceReader& reader, const UploaderOptions& options) {
  const uint64_t bytes = reader.bytes();
  uint64_t most = options.chunk_bytes;
  if (reader.by_many_threads() && reader.is_file())
    most = std::clamp(kPiecesOfAFileChunk * kFilePieceBytes, options.min_chunk_bytes, most);
  const uint64_t small = std::min((bytes - 1) / kLeastChunksOfASource + 1, kSmallChunkBytes);
  const uint64_t part = std::max(small, (bytes - 1) / kChunksOfALargeSource + 1);
  return std::clamp(RoundedUp(part, kChunkUnitBytes).value_or(bytes), options.min_chunk_bytes,
                    most);
}

}  // namespace

SourceDivision SourceDivision::Of(const SourceReader& reader,
                                  const UploaderOptions& options) noexcept {
  SourceDivision division{.chunk_bytes = ChunkBytesOf(reader, options),
                          .piece_bytes = options.piece_bytes,
                          .most_chunks = std::numeric_limits<uint32_t>::max()};
  if (reader.by_many_threads()) {
    division.most_chunks =
        static_cast<uint32_t>(std::max(kCachedBytes / division.chunk_bytes, kLeastChunksOfASource));
  }
  if (reader.is_file()) {
    const uint64_t part = std::min(division.chunk_bytes / kPiecesOfAFileChunk, kFilePieceBytes);
    division.piece_bytes = std::max(division.piece_bytes, part);
  }
  division.piece_bytes = std::max(division.piece_bytes, division.chunk_bytes / kPiecesOfAChunk + 1);
  return division;
}

}  // namespace h2d::internal
