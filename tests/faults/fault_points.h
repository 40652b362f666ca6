// Every point at which a run can fail: each call of the device, in each way.
#ifndef H2D_TESTS_FAULTS_FAULT_POINTS_H_
#define H2D_TESTS_FAULTS_FAULT_POINTS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "h2d/device/faulty/fault.h"

namespace h2d::testing {

struct FaultedRun {
  bool struck = false;  // the fault did
  uint64_t errors = 0;  // that reached a caller
  std::string failure;  // empty: what must hold whatever fails held
};

struct FaultTotals {
  uint64_t runs = 0;
  uint64_t points = 0;  // of which a fault struck
  uint64_t errors = 0;
};

// "call 3 of Record fails once, after it was carried out".
std::string ToString(const Fault& fault);

// Lets `run` fail its first call of each kind, its second and so on, until it has no such call
// left: once, for ever, or with the device lost; before the call was carried out or after it, as an
// error of earlier work that a later call reports. Stops at the first failure and answers it, with
// the fault; empty when there is none. `run` begins anew each time.
std::string FailEachCall(const std::function<FaultedRun(const Fault&)>& run, FaultTotals& totals);

}  // namespace h2d::testing

#endif  // H2D_TESTS_FAULTS_FAULT_POINTS_H_
