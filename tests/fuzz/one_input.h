// One plan from any bytes, as a fuzzer makes them.
#ifndef H2D_TESTS_FUZZ_ONE_INPUT_H_
#define H2D_TESTS_FUZZ_ONE_INPUT_H_

#include <cstdint>
#include <span>
#include <string>

namespace h2d::testing {

// Decodes `bytes` as every other test does and runs the plan on the library's own stager. Answers
// what went wrong, with the token that replays it; nothing when all went well. A crash prints that
// token as well.
std::string RunOneInput(std::span<const uint8_t> bytes);

}  // namespace h2d::testing

#endif  // H2D_TESTS_FUZZ_ONE_INPUT_H_
