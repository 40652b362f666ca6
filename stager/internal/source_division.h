// How the source of an upload is divided into chunks, and chunks into pieces.
#ifndef H2D_STAGER_INTERNAL_SOURCE_DIVISION_H_
#define H2D_STAGER_INTERNAL_SOURCE_DIVISION_H_

#include <cstdint>

#include "h2d/stager/internal/source_reader.h"
#include "h2d/stager/uploader_options.h"

namespace h2d::internal {

// A chunk is sent by one copy; a piece of it is read by one thread.
struct SourceDivision {
  uint64_t chunk_bytes = 0;  // of each chunk but the last
  uint64_t piece_bytes = 0;  // of each piece of a chunk but the last
  uint32_t most_chunks = 0;  // being read or in flight at once, if the uploader has so many

  // REQUIRES: the source is not empty, and `reader` was told how many threads will read it.
  static SourceDivision Of(const SourceReader& reader, const UploaderOptions& options) noexcept;
};

}  // namespace h2d::internal

#endif  // H2D_STAGER_INTERNAL_SOURCE_DIVISION_H_
