// How fast each way to the device is, by size.
#ifndef H2D_BENCH_CALIBRATE_MEASURE_H_
#define H2D_BENCH_CALIBRATE_MEASURE_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "h2d/bench/calibrate/series.h"
#include "h2d/examples/load_file/target_device.h"
#include "h2d/stager/uploader_options.h"

namespace h2d::calibrate {

struct MeasureOptions {
  uint64_t most_bytes = uint64_t{1} << 30;  // the largest size; sizes grow fourfold up to it
  uint64_t least_bytes = uint64_t{16} << 10;
  uint32_t repeats = 9;  // the median counts; of sizes up to 4 MiB five times as many
  // Before each way takes its turn: longer than the threads of the way before it stay awake.
  std::chrono::microseconds pause{500};
  std::vector<uint32_t> threads = {1, 2, 4, 8, 12};
  std::vector<uint64_t> chunk_bytes = {uint64_t{1} << 20, uint64_t{2} << 20, uint64_t{4} << 20,
                                       uint64_t{8} << 20};
  // What uploads are measured with, and a pipeline but for what is searched.
  UploaderOptions uploader{};
  // Also the uploader with each of its other options changed, beside the driver, up to 64 MiB.
  bool sweep = false;
  // Keep the calling thread to the cores near the device. Other threads run where they like.
  bool near_cores = true;
};

// Measures, on the device's own clock, from the call until the stream is idle:
//   "pinned, raw"         one copy from pinned memory: what the link gives
//   "pinned, and record"  the same and an event behind it: the least that tells when it was read
//   "pinned, uploader"    the same through an uploader, which asks what memory it is; "declared":
//                         which is told
//   "pageable, driver"    one copy from pageable memory, as the driver does it
//   "pageable, uploader"  through an uploader with the options given; "directly": whose policy
//   sends
//                         small pageable sources from where they lie
//   "pageable, ring"      through one pinned slot, by the calling thread
//   "pageable, pipeline"  through chunks alone: with each number of threads and size of chunk at
//                         the largest size, and with the best of them at every size
//   "file, driver"        one copy from a mapping of a file in the page cache
//   "file, uploader"      the file by its descriptor, through an uploader
// At each size the ways take turns, so that what they are compared by is of one time. Each makes
// one run unmeasured, so that what is measured is one run of several in a row; driver and uploader
// are measured "after a pause", too, when the uploader's threads sleep and the caches hold what
// other ways left there.
// Small sources are sent in loops of 1,000, too ("loops, ..."), from the first call until all have
// arrived: what a loader of many small tensors sees.
// `told` hears what is measured next.
Expected<std::vector<Series>> Measure(load_file::TargetDevice& target,
                                      const MeasureOptions& options,
                                      const std::function<void(std::string_view)>& told);

}  // namespace h2d::calibrate

#endif  // H2D_BENCH_CALIBRATE_MEASURE_H_
