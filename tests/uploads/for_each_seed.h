// Which random runs a test of uploads makes.
#ifndef H2D_TESTS_UPLOADS_FOR_EACH_SEED_H_
#define H2D_TESTS_UPLOADS_FOR_EACH_SEED_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>

namespace h2d::testing {

inline uint64_t NumberFromEnvironment(const char* name, uint64_t fallback) {
  const char* const text = std::getenv(name);
  return text == nullptr || *text == 0 ? fallback : std::strtoull(text, nullptr, 10);
}

// Calls `run` for each seed until a fatal failure, and answers how many there were: `of_a_thousand`
// of each thousand of H2D_PLANS, or the one that H2D_SEED names.
template <class Run>
uint64_t ForEachSeed(uint64_t of_a_thousand, const Run& run) {
  const uint64_t only = NumberFromEnvironment("H2D_SEED", 0);
  const uint64_t runs =
      only != 0 ? 1 : NumberFromEnvironment("H2D_PLANS", 1000) * of_a_thousand / 1000;
  const uint64_t first = only != 0 ? only : 1;
  for (uint64_t seed = first; seed < first + runs && !::testing::Test::HasFatalFailure(); ++seed) {
    run(seed);
  }
  return runs;
}

}  // namespace h2d::testing

#endif  // H2D_TESTS_UPLOADS_FOR_EACH_SEED_H_
