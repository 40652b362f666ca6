// Work of a CUDA device that is captured once and launched many times.
#ifndef H2D_DEVICE_CUDA_ENGINE_CUDA_GRAPH_H_
#define H2D_DEVICE_CUDA_ENGINE_CUDA_GRAPH_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "h2d/device/cuda/cuda_device.h"
#include "h2d/device/error.h"
#include "h2d/device/stream.h"

struct CUgraph_st;
struct CUgraphExec_st;

namespace h2d {

// Whose calls a capture guards against: everybody's, its own thread's, nobody's.
enum class CudaCaptureMode : uint8_t { kGlobal, kThreadLocal, kRelaxed };

// From now on what is enqueued on `stream` is captured and not run.
[[nodiscard]] Expected<void> BeginCapture(const CudaDevice& device, const Stream& stream,
                                          CudaCaptureMode mode);

// A graph that can be launched. Owns it; move-only; in a forked child and at exit it is quiet.
class CudaExecutableGraph {
 public:
  // Enqueues the graph's work on `stream`.
  [[nodiscard]] Expected<void> Launch(const Stream& stream) const;

 private:
  friend class CudaGraph;
  struct Destroy {
    std::shared_ptr<internal::CudaState> state;
    void operator()(CUgraphExec_st* graph) const noexcept;
  };
  using Owned = std::unique_ptr<CUgraphExec_st, Destroy>;

  explicit CudaExecutableGraph(Owned graph) noexcept : graph_(std::move(graph)) {}

  Owned graph_;
};

// What a capture recorded. Owns it; move-only; in a forked child and at exit it is quiet.
class CudaGraph {
 public:
  // Ends the capture of `stream`, on the thread that began it. Errors: it was invalidated; it is
  // over nevertheless.
  [[nodiscard]] static Expected<CudaGraph> EndCapture(const CudaDevice& device,
                                                      const Stream& stream);

  // How many operations were recorded.
  [[nodiscard]] Expected<uint64_t> NodeCount() const;

  // Leaves captures alone.
  [[nodiscard]] Expected<CudaExecutableGraph> Instantiate() const;

 private:
  struct Destroy {
    std::shared_ptr<internal::CudaState> state;
    void operator()(CUgraph_st* graph) const noexcept;
  };
  using Owned = std::unique_ptr<CUgraph_st, Destroy>;

  explicit CudaGraph(Owned graph) noexcept : graph_(std::move(graph)) {}

  Owned graph_;
};

}  // namespace h2d

#endif  // H2D_DEVICE_CUDA_ENGINE_CUDA_GRAPH_H_
