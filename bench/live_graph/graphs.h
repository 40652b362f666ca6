// Three graphs that stand for what an engine replays.
#ifndef H2D_BENCH_LIVE_GRAPH_GRAPHS_H_
#define H2D_BENCH_LIVE_GRAPH_GRAPHS_H_

#include <cuda_runtime_api.h>

#include <string>
#include <vector>

#include "h2d/bench/live_graph/nvrtc.h"

namespace h2d::bench {

// The source of every kernel here, `fill` included.
extern const char kKernelSource[];

struct LiveGraph {
  std::string name;
  cudaGraphExec_t executable = nullptr;
};

// Captured on `stream` from kernels of `kKernelSource`:
//   decode-like   hundreds of small kernels (4 us on an H200), one after another, as a decoding
//   step
//                 has them
//   memory-bound  kernels that stream through device memory
//   arithmetic    kernels that keep every multiprocessor multiplying
std::vector<LiveGraph> CaptureGraphs(const Kernels& kernels, cudaStream_t stream);

}  // namespace h2d::bench

#endif  // H2D_BENCH_LIVE_GRAPH_GRAPHS_H_
