#include "h2d/bench/calibrate/variants.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

namespace h2d::calibrate {
namespace {

constexpr uint64_t kKiB = uint64_t{1} << 10;

// One name for each option, and its values.
void AddSizes(std::vector<Variant>& variants, const UploaderOptions& base, const std::string& name,
              uint64_t UploaderOptions::*option, const std::vector<uint64_t>& kib) {
  for (const uint64_t value : kib) {
    if (base.*option == value * kKiB) continue;
    Variant variant{name + " " + std::to_string(value) + " KiB", base};
    variant.options.*option = value * kKiB;
    if (Validate(variant.options)) variants.push_back(std::move(variant));
  }
}

}  // namespace

std::vector<Variant> VariantsOf(const UploaderOptions& base) {
  std::vector<Variant> variants = {{"as it is", base}};
  AddSizes(variants, base, "pieces of", &UploaderOptions::piece_bytes, {64, 128, 256, 512, 1024});
  AddSizes(variants, base, "least chunk", &UploaderOptions::min_chunk_bytes,
           {64, 128, 256, 512, 1024});
  AddSizes(variants, base, "ring up to", &UploaderOptions::ring_bytes, {32, 64, 128, 256, 512});
  AddSizes(variants, base, "wakes from", &UploaderOptions::wake_bytes,
           {512, 1024, 2048, 4096, 8192});
  for (const uint32_t threads : {3U, 5U, 7U, 10U}) {
    if (threads == base.threads) continue;
    variants.push_back({std::to_string(threads) + " threads", base});
    variants.back().options.threads = threads;
  }
  for (const int us : {0, 50, 200}) {
    const std::chrono::microseconds awake_for(us);
    if (base.awake_for == awake_for) continue;
    variants.push_back({"awake for " + std::to_string(us) + " us", base});
    variants.back().options.awake_for = awake_for;
  }
  return variants;
}

}  // namespace h2d::calibrate
