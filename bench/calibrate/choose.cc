#include "h2d/bench/calibrate/choose.h"

#include <algorithm>
#include <limits>
#include <string_view>

namespace h2d::calibrate {
namespace {

// The last series of that name that has more than the one size of the search, or null.
const Series* Find(const std::vector<Series>& series, std::string_view way) {
  const Series* found = nullptr;
  for (const Series& one : series) {
    if (one.way == way && one.samples.size() > 1) found = &one;
  }
  return found;
}

const Series* LeastPipeline(const std::vector<Series>& series) {
  double best = std::numeric_limits<double>::max();
  for (const Series& one : series) {
    if (one.way == "pageable, pipeline" && one.samples.size() == 1)
      best = std::min(best, one.samples.front().seconds);
  }
  const Series* least = nullptr;
  for (const Series& one : series) {
    const bool good = one.way == "pageable, pipeline" && one.samples.size() == 1 &&
                      one.samples.front().seconds <= best * 1.03;
    if (!good) continue;
    if (least == nullptr || one.threads < least->threads ||
        (one.threads == least->threads && one.chunk_bytes < least->chunk_bytes)) {
      least = &one;
    }
  }
  return least;
}

uint64_t RingBytes(const Series& ring, const Series& pipeline, uint64_t otherwise) {
  uint64_t bytes = 0;
  for (const Sample& sample : ring.samples) {
    const Sample* const other = pipeline.At(sample.bytes);
    if (other == nullptr) return otherwise;
    if (sample.seconds > other->seconds * 1.05) break;
    bytes = sample.bytes;
  }
  return bytes;
}

uint64_t ThroughPinnedBelow(const Series& driver, const Series& pipeline, const Series* ring) {
  uint64_t border = std::numeric_limits<uint64_t>::max();
  for (auto sample = driver.samples.rbegin(); sample != driver.samples.rend(); ++sample) {
    const Sample* const piped = pipeline.At(sample->bytes);
    const Sample* const ringed = ring == nullptr ? nullptr : ring->At(sample->bytes);
    const bool driver_is_faster = (piped == nullptr || sample->seconds < piped->seconds) &&
                                  (ringed == nullptr || sample->seconds < ringed->seconds);
    if (!driver_is_faster) break;
    border = sample->bytes;
  }
  return border;
}

// Whether `other` took no longer than that sample, where it was measured.
bool IsAsFast(const Series* other, const Sample& sample) {
  const Sample* const beside = other == nullptr ? nullptr : other->At(sample.bytes);
  return beside != nullptr && beside->seconds <= sample.seconds;
}

// One more than the largest size up to which the direct way was always the fastest, in loops, too.
uint64_t ThroughPinnedFrom(const std::vector<Series>& series, const Series& direct,
                           const Series& pipeline, const Series* ring) {
  const Series* const loops = Find(series, "loops, pageable, uploader");
  const Series* const direct_loops = Find(series, "loops, pageable, uploader, directly");
  uint64_t border = 0;
  for (const Sample& sample : direct.samples) {
    const Sample* const looped = direct_loops == nullptr ? nullptr : direct_loops->At(sample.bytes);
    if (IsAsFast(&pipeline, sample) || IsAsFast(ring, sample)) break;
    if (looped != nullptr && IsAsFast(loops, *looped)) break;
    border = sample.bytes + 1;
  }
  return border;
}

}  // namespace

UploaderOptions Choose(const std::vector<Series>& series, const UploaderOptions& otherwise) {
  UploaderOptions options = otherwise;
  if (const Series* const least = LeastPipeline(series)) {
    options.threads = least->threads;
    options.chunk_bytes = least->chunk_bytes;
    options.min_chunk_bytes = std::min(options.min_chunk_bytes, options.chunk_bytes);
  }
  const Series* const pipeline = Find(series, "pageable, pipeline");
  const Series* const driver = Find(series, "pageable, driver");
  const Series* const ring = Find(series, "pageable, ring");
  if (ring != nullptr && pipeline != nullptr)
    options.ring_bytes = RingBytes(*ring, *pipeline, options.ring_bytes);
  options.ring_bytes = std::min(options.ring_bytes, options.chunk_bytes);
  if (driver != nullptr && pipeline != nullptr) {
    options.policy.pageable_through_pinned_below_bytes =
        ThroughPinnedBelow(*driver, *pipeline, ring);
  }
  const Series* const direct = Find(series, "pageable, uploader, directly");
  if (direct != nullptr && pipeline != nullptr) {
    options.policy.pageable_through_pinned_from_bytes =
        ThroughPinnedFrom(series, *direct, *pipeline, ring);
  }
  options.max_pinned_bytes =
      std::max(options.max_pinned_bytes, options.chunk_bytes * options.max_chunks);
  return options;
}

}  // namespace h2d::calibrate
