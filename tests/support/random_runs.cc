#include "h2d/tests/support/random_runs.h"

#include <cstdlib>
#include <string_view>

namespace h2d::testing {
namespace {

constexpr std::string_view kSeedPrefix = "seed:";
constexpr uint64_t kWithout = 1000;  // what H2D_PLANS is without it
// So far are the seeds of one H2D_SEED from those of the next.
constexpr uint64_t kSeedsApart = 1'000'000;

std::string_view FromEnvironment(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? std::string_view() : std::string_view(text);
}

uint64_t NumberFromEnvironment(const char* name, uint64_t without) {
  const std::string_view text = FromEnvironment(name);
  return text.empty() ? without : std::strtoull(text.data(), nullptr, 10);
}

}  // namespace

uint64_t RunsFromEnvironment(uint64_t without) {
  return NumberFromEnvironment("H2D_PLANS", kWithout) * without / kWithout;
}

uint64_t SeedFromEnvironment() { return NumberFromEnvironment("H2D_SEED", 0); }

std::optional<std::string> ReplayedPlan() {
  const std::string_view name = FromEnvironment("H2D_REPLAY");
  if (name.empty() || name.starts_with(kSeedPrefix)) return std::nullopt;
  return std::string(name);
}

Seeds Seeds::FromEnvironment(uint64_t without) {
  const std::string_view name = testing::FromEnvironment("H2D_REPLAY");
  if (name.starts_with(kSeedPrefix)) {
    return {.first = std::strtoull(name.data() + kSeedPrefix.size(), nullptr, 10),
            .count = 1,
            .replay = true};
  }
  return {.first = 1 + kSeedsApart * SeedFromEnvironment(), .count = RunsFromEnvironment(without)};
}

std::string HowToReplay(uint64_t seed) {
  return "replay with H2D_REPLAY=" + std::string(kSeedPrefix) + std::to_string(seed);
}

}  // namespace h2d::testing
