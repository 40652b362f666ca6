// In a benchmark a failed CUDA call has no remedy: say which, and end.
#ifndef H2D_BENCH_LIVE_GRAPH_CUDA_CHECK_H_
#define H2D_BENCH_LIVE_GRAPH_CUDA_CHECK_H_

#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "h2d/device/error.h"

namespace h2d::bench {

inline void Check(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "%s failed with %s\n", what, cudaGetErrorName(result));
  std::exit(1);
}

template <class T>
T Must(Expected<T> answer) {
  if (!answer) {
    std::fprintf(stderr, "%s\n", answer.error().ToString().c_str());
    std::exit(1);
  }
  if constexpr (!std::is_void_v<T>) return *std::move(answer);
}

}  // namespace h2d::bench

#endif  // H2D_BENCH_LIVE_GRAPH_CUDA_CHECK_H_
