#include "h2d/stager/internal/source_division.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "h2d/stager/upload_source.h"

namespace h2d::internal {
namespace {

constexpr uint64_t kKiB = uint64_t{1} << 10;
constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint32_t kMany = SourceReader::kManyThreads;

SourceDivision OfFile(uint64_t bytes, uint32_t threads, const UploaderOptions& options = {}) {
  const UploadSource source = UploadSource::File(0, 0, bytes);
  SourceReader reader(source);
  reader.PrepareFor(threads);
  return SourceDivision::Of(reader, options);
}

// Of memory that nobody looks at.
SourceDivision OfMemory(uint64_t bytes, uint32_t threads, const UploaderOptions& options = {}) {
  void* const room =
      mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  EXPECT_NE(room, MAP_FAILED);
  const UploadSource source =
      UploadSource::Memory(std::span(static_cast<const std::byte*>(room), bytes));
  SourceReader reader(source);
  reader.PrepareFor(threads);
  const SourceDivision division = SourceDivision::Of(reader, options);
  munmap(room, bytes);
  return division;
}

TEST(SourceDivision, MakesChunksOfAQuarterThenOfASixteenthWithinTheirBounds) {
  EXPECT_EQ(OfFile(1, 1).chunk_bytes, 256 * kKiB);
  EXPECT_EQ(OfFile(2 * kMiB, 1).chunk_bytes, 512 * kKiB);
  EXPECT_EQ(OfFile(4 * kMiB, 1).chunk_bytes, kMiB);
  EXPECT_EQ(OfFile(16 * kMiB, 1).chunk_bytes, kMiB);
  EXPECT_EQ(OfFile(64 * kMiB, 1).chunk_bytes, 4 * kMiB);
  EXPECT_EQ(OfFile(128 * kMiB, 1).chunk_bytes, 8 * kMiB);
  EXPECT_EQ(OfFile(1024 * kMiB, 1).chunk_bytes, 8 * kMiB);
}

TEST(SourceDivision, KeepsWhatManyThreadsReadInTheCaches) {
  const SourceDivision memory = OfMemory(128 * kMiB, kMany);
  EXPECT_EQ(memory.chunk_bytes, 8 * kMiB);
  EXPECT_EQ(memory.piece_bytes, 128 * kKiB);
  EXPECT_EQ(memory.most_chunks, 4U);
  const SourceDivision file = OfFile(128 * kMiB, kMany);
  EXPECT_EQ(file.chunk_bytes, 4 * kMiB);
  EXPECT_EQ(file.piece_bytes, kMiB);
  EXPECT_EQ(file.most_chunks, 8U);
  UploaderOptions large;
  large.chunk_bytes = 16 * kMiB;
  EXPECT_EQ(OfMemory(1024 * kMiB, kMany, large).most_chunks, 4U);
  UploaderOptions small;
  small.chunk_bytes = kMiB;
  EXPECT_EQ(OfMemory(128 * kMiB, kMany, small).most_chunks, 32U);
  EXPECT_EQ(OfFile(128 * kMiB, kMany, small).chunk_bytes, kMiB);
}

TEST(SourceDivision, LimitsNoSmallSourceAndNoneOfFewThreads) {
  for (const SourceDivision& division :
       {OfMemory(128 * kMiB - 1, kMany), OfMemory(128 * kMiB, kMany - 1),
        OfFile(128 * kMiB - 1, kMany), OfFile(128 * kMiB, kMany - 1)}) {
    EXPECT_EQ(division.most_chunks, ~uint32_t{0});
  }
}

TEST(SourceDivision, MakesPiecesOfAFileLarger) {
  EXPECT_EQ(OfMemory(64 * kMiB, 1).piece_bytes, 128 * kKiB);
  EXPECT_EQ(OfFile(kMiB, 1).piece_bytes, 128 * kKiB);
  EXPECT_EQ(OfFile(16 * kMiB, 1).piece_bytes, 256 * kKiB);
  EXPECT_EQ(OfFile(64 * kMiB, 1).piece_bytes, kMiB);
  EXPECT_EQ(OfFile(1024 * kMiB, 1).piece_bytes, kMiB);
  UploaderOptions options;
  options.piece_bytes = 2 * kMiB;
  EXPECT_EQ(OfFile(64 * kMiB, 1, options).piece_bytes, 2 * kMiB);
}

TEST(SourceDivision, KeepsToTheLeastChunkAlsoOfAFile) {
  UploaderOptions options;
  options.min_chunk_bytes = options.chunk_bytes;
  EXPECT_EQ(OfFile(128 * kMiB, kMany, options).chunk_bytes, options.chunk_bytes);
}

// Pieces of a chunk are counted in 32 bits.
TEST(SourceDivision, MakesPiecesLargerRatherThanTooMany) {
  UploaderOptions options;
  options.chunk_bytes = options.max_pinned_bytes = uint64_t{1} << 40;
  options.piece_bytes = 1;
  const SourceDivision division = OfFile(uint64_t{1} << 44, 1, options);
  EXPECT_EQ(division.chunk_bytes, uint64_t{1} << 40);
  EXPECT_LE(division.chunk_bytes / division.piece_bytes, uint64_t{1} << 16);
}

}  // namespace
}  // namespace h2d::internal
