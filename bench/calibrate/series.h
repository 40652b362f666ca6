// Measured bandwidths, as plain data.
#ifndef H2D_BENCH_CALIBRATE_SERIES_H_
#define H2D_BENCH_CALIBRATE_SERIES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace h2d::calibrate {

struct Sample {
  uint64_t bytes = 0;
  double seconds = 0;        // the median of the runs
  double worst_seconds = 0;  // ... and the slowest of them

  double gb_per_second() const { return static_cast<double>(bytes) / seconds * 1e-9; }
};

// One way to the device, by size.
struct Series {
  std::string way;
  uint32_t threads = 0;  // of a pipeline
  uint64_t chunk_bytes = 0;
  std::vector<Sample> samples;  // by growing size

  // One of those that try other options; beside the driver of the same turns, which comes first.
  bool of_sweep() const { return way.starts_with(kSweep); }
  static constexpr std::string_view kSweep = "sweep, ";
  static constexpr std::string_view kSweepDriver = "sweep, driver";

  // One of those that send a small source again and again; a sample is of one call.
  bool of_loops() const { return way.starts_with(kLoops); }
  static constexpr std::string_view kLoops = "loops, ";

  // The way without what says that it is in loops.
  std::string name() const { return of_loops() ? way.substr(kLoops.size()) : way; }

  const Sample* At(uint64_t bytes) const {
    for (const Sample& sample : samples) {
      if (sample.bytes == bytes) return &sample;
    }
    return nullptr;
  }
};

}  // namespace h2d::calibrate

#endif  // H2D_BENCH_CALIBRATE_SERIES_H_
