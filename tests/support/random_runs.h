// Which random runs a test makes. One meaning for every random test of the library:
//
//   H2D_PLANS=<n>       how many: n for each thousand that the test makes without it
//   H2D_SEED=<n>        which: the same in every run of the test; others for another n
//   H2D_REPLAY=<name>   one run again, that a failure named: "h2d1:..." a plan, "seed:..." a run
//                       that follows from a number. Tests of the other kind run as without it.
#ifndef H2D_TESTS_SUPPORT_RANDOM_RUNS_H_
#define H2D_TESTS_SUPPORT_RANDOM_RUNS_H_

#include <cstdint>
#include <optional>
#include <string>

namespace h2d::testing {

// `without` runs, times H2D_PLANS / 1000.
uint64_t RunsFromEnvironment(uint64_t without);

// 0 without H2D_SEED.
uint64_t SeedFromEnvironment();

// The plan that H2D_REPLAY names; nothing when it names none.
std::optional<std::string> ReplayedPlan();

// The seeds of a test whose runs follow from a number each.
struct Seeds {
  uint64_t first = 1;
  uint64_t count = 1;
  bool replay = false;  // of the one run that H2D_REPLAY names

  static Seeds FromEnvironment(uint64_t without);
  uint64_t end() const noexcept { return first + count; }
};

// For the message of such a run that failed.
std::string HowToReplay(uint64_t seed);

}  // namespace h2d::testing

#endif  // H2D_TESTS_SUPPORT_RANDOM_RUNS_H_
