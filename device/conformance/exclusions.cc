#include "h2d/device/conformance/exclusions.h"

namespace h2d::conformance {

const Exclusion* FindExclusion(const std::vector<Exclusion>& exclusions,
                               std::string_view full_name) {
  for (const Exclusion& exclusion : exclusions) {
    const std::string_view pattern = exclusion.test;
    const bool matches = pattern.ends_with('*')
                             ? full_name.starts_with(pattern.substr(0, pattern.size() - 1))
                             : full_name == pattern;
    if (matches) return &exclusion;
  }
  return nullptr;
}

}  // namespace h2d::conformance
