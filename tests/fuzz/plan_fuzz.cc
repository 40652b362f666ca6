// The entry point for libFuzzer: `bazel run --config=asan-ubsan //tests/fuzz:plan_fuzz`.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "h2d/tests/fuzz/one_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string failure = h2d::testing::RunOneInput({data, size});
  if (failure.empty()) return 0;
  std::fprintf(stderr, "%s", failure.c_str());
  std::abort();
}
