// A stager in two hundred lines, right or with one flaw, that the plan runner drives like the real
// one.
//
// Right, it proves that the runner asks no more than the contract does. With a flaw it must be
// reported: a detector that has found every planted fault is one to believe.
#ifndef H2D_TESTS_WRONG_STAGERS_LITTLE_STAGER_H_
#define H2D_TESTS_WRONG_STAGERS_LITTLE_STAGER_H_

#include "h2d/tests/support/stager_under_test.h"
#include "h2d/tests/wrong_stagers/flaw.h"

namespace h2d::testing {

StagerFactory LittleStagerWith(Flaw flaw);

}  // namespace h2d::testing

#endif  // H2D_TESTS_WRONG_STAGERS_LITTLE_STAGER_H_
