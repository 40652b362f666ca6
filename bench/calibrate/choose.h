// From measurements to the policy and the options that suit the machine.
#ifndef H2D_BENCH_CALIBRATE_CHOOSE_H_
#define H2D_BENCH_CALIBRATE_CHOOSE_H_

#include <vector>

#include "h2d/bench/calibrate/series.h"
#include "h2d/stager/uploader_options.h"

namespace h2d::calibrate {

// - Threads and chunks: the least that come within 3 % of the best pipeline at the largest size.
// - The ring: up to the largest size at which it takes at most 5 % longer than the pipeline, which
//   wakes threads for it.
// - Pageable memory passes through pinned memory below the smallest size from which on the driver's
//   own copy is faster than that; without a border if it never is at the largest size.
// - And from the size behind the largest up to which the copy from where they lie is faster, if it
//   is for the smallest, and in loops, too: such sources have to stay until their tickets say
//   otherwise.
// What was not measured stays as it is in `otherwise`.
UploaderOptions Choose(const std::vector<Series>& series, const UploaderOptions& otherwise = {});

}  // namespace h2d::calibrate

#endif  // H2D_BENCH_CALIBRATE_CHOOSE_H_
