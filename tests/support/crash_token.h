// Makes a crash name the plan that it happened in.
#ifndef H2D_TESTS_SUPPORT_CRASH_TOKEN_H_
#define H2D_TESTS_SUPPORT_CRASH_TOKEN_H_

#include <cstdint>
#include <span>

namespace h2d::testing {

// From now on a fatal signal, a sanitizer's death or a time-out (SIGTERM) writes the token of the
// current plan to standard error. The token is formatted here, so that nothing is left to do then
// but one write. Not for two threads at once.
void SetCrashPlan(std::span<const uint8_t> plan_bytes);
void ClearCrashPlan();

}  // namespace h2d::testing

#endif  // H2D_TESTS_SUPPORT_CRASH_TOKEN_H_
