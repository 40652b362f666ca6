// A few copies through a stager, every one of which is explored: which stream, which mirror, which
// values, what each query answers, which call of the device fails, which task goes on.
#ifndef H2D_TESTS_EXPLORATION_SMALL_WORLD_H_
#define H2D_TESTS_EXPLORATION_SMALL_WORLD_H_

#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "h2d/device/fake/explore/exploration.h"
#include "h2d/tests/support/stager_under_test.h"

namespace h2d::testing {

struct WorldBounds {
  uint32_t before = 0;                 // copies before the tasks begin
  std::vector<uint32_t> copies = {4};  // of each task; one task is no task: it has no schedule
  uint32_t slots = 2;
  uint32_t streams = 2;
  uint32_t mirrors = 2;
  // A copy brings one of so many images: the first two differ in one element of four, so that a
  // copy is trimmed; the third differs in all from both.
  uint32_t images = 2;
  // At most one call that the library makes fails, before it was carried out or after.
  bool fault = false;
  // The stager may end while its copies are in flight, too.
  bool ends_in_flight = false;
  // What calls answer is kept in the report.
  bool keep_outcomes = false;
  // Of programs that differ only in the names of streams, mirrors and images one is explored.
  bool one_of_symmetric = true;
  // At most so many queries of a run answer late. A stager that polls for ever needs a bound, and
  // what is explored within it is not everything.
  uint32_t max_late = ~uint32_t{0};
  uint64_t max_runs = ~uint64_t{0};

  std::string ToString() const;
};

void PrintTo(const WorldBounds& bounds, std::ostream* out);

struct WorldReport {
  std::string failure = {};  // of the first run that failed, with its program and its time line
  Exploration exploration;
  // How many runs those that were made stand for, by symmetry.
  uint64_t stands_for = 0;
  // What the calls of all those runs answered: runs in each order, and with other names, answer the
  // same.
  std::map<std::string, uint64_t> outcomes = {};
};

// Makes every run within the bounds, until one fails. In each, at its end: no hazard was reported;
// readers that are ordered after the last call through a mirror see what full copies would have
// left; every slot can be had again and no more than that; limits were kept; no memory is lost.
WorldReport ExploreWorld(const WorldBounds& bounds, const StagerFactory& make_stager,
                         bool reduce = true);

}  // namespace h2d::testing

#endif  // H2D_TESTS_EXPLORATION_SMALL_WORLD_H_
