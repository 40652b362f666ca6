#include "h2d/device/fake/explore/search.h"

namespace h2d {

SearchReport SearchSeeds(
    uint64_t first_seed, uint64_t runs,
    const std::function<std::shared_ptr<ChoiceSource>(uint64_t seed)>& strategy,
    const std::function<std::string(const std::shared_ptr<ChoiceSource>& choices)>& run) {
  SearchReport report;
  while (report.runs < runs && report.failure.empty()) {
    report.seed = first_seed + report.runs;
    ++report.runs;
    report.failure = run(strategy(report.seed));
  }
  return report;
}

}  // namespace h2d
