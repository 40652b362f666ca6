// Kernels compiled at run time, so that nothing here needs a CUDA compiler.
#ifndef H2D_BENCH_LIVE_GRAPH_NVRTC_H_
#define H2D_BENCH_LIVE_GRAPH_NVRTC_H_

#include <cuda_runtime_api.h>

#include <string>

namespace h2d::bench {

// Kernels of one source text, for the device that is current. Loads NVRTC by name, so a program
// that links this starts without it. Ends the program with a message when anything fails. Lives as
// long as the process.
class Kernels {
 public:
  explicit Kernels(const std::string& source);

  // The kernel declared `extern "C"` as `name`, for `cudaLaunchKernel`.
  const void* Find(const char* name) const;

 private:
  cudaLibrary_t library_ = nullptr;
};

}  // namespace h2d::bench

#endif  // H2D_BENCH_LIVE_GRAPH_NVRTC_H_
