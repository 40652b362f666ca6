// Which random runs a test of uploads makes.
#ifndef H2D_TESTS_UPLOADS_FOR_EACH_SEED_H_
#define H2D_TESTS_UPLOADS_FOR_EACH_SEED_H_

#include <gtest/gtest.h>

#include <cstdint>

#include "h2d/tests/support/random_runs.h"

namespace h2d::testing {

// Calls `run` for each seed until a fatal failure, and answers how many there were: `without`
// unless the environment says otherwise (random_runs.h).
template <class Run>
uint64_t ForEachSeed(uint64_t without, const Run& run) {
  const Seeds seeds = Seeds::FromEnvironment(without);
  for (uint64_t seed = seeds.first; seed < seeds.end() && !::testing::Test::HasFatalFailure();
       ++seed) {
    run(seed);
  }
  return seeds.count;
}

}  // namespace h2d::testing

#endif  // H2D_TESTS_UPLOADS_FOR_EACH_SEED_H_
