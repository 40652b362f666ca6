// How a step writer chooses what travels together.
#ifndef H2D_STAGER_STEP_WRITER_OPTIONS_H_
#define H2D_STAGER_STEP_WRITER_OPTIONS_H_

#include <cstdint>

namespace h2d {

struct StepWriterOptions {
  // Changed spans of the slab travel as one when at most this many bytes, all of which the host
  // knows, lie between them. Otherwise they travel as entries of one batch call. An entry costs the
  // host about as much as this many bytes cost to stage (docs/performance.md).
  uint64_t cover_gap_bytes = uint64_t{8} << 10;
};

}  // namespace h2d

#endif  // H2D_STAGER_STEP_WRITER_OPTIONS_H_
