// What runs beside a live graph.
#ifndef H2D_BENCH_LIVE_GRAPH_LOADS_H_
#define H2D_BENCH_LIVE_GRAPH_LOADS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "h2d/bench/live_graph/nvrtc.h"
#include "h2d/device/cuda/cuda_device.h"

namespace h2d::bench {

// One way to bring a small tensor to the device; `issue` brings the n-th. Empty: nothing runs.
struct Load {
  std::string name;
  std::function<void(uint64_t n)> issue;
  // The largest ratio that the project aims at; 0: none, it is there to compare with.
  double target = 0;
};

// Nothing first; then the stager, raw copies without its safety, and the ways that use the
// multiprocessors or the device's memory; nothing again at the end, whose ratio to the first is
// what the measurement itself cannot tell apart. All on streams of their own. The loads live as
// long as the process.
std::vector<Load> MakeLoads(std::shared_ptr<CudaDevice> device, const Kernels& kernels);

}  // namespace h2d::bench

#endif  // H2D_BENCH_LIVE_GRAPH_LOADS_H_
