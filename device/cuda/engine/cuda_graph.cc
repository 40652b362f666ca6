#include "h2d/device/cuda/engine/cuda_graph.h"

#include <cuda_runtime_api.h>

#include <cstddef>

#include "h2d/device/cuda/engine/on_device.h"

namespace h2d {
namespace {

cudaStreamCaptureMode NativeMode(CudaCaptureMode mode) {
  switch (mode) {
    case CudaCaptureMode::kGlobal:
      return cudaStreamCaptureModeGlobal;
    case CudaCaptureMode::kThreadLocal:
      return cudaStreamCaptureModeThreadLocal;
    case CudaCaptureMode::kRelaxed:
      break;
  }
  return cudaStreamCaptureModeRelaxed;
}

}  // namespace

Expected<void> BeginCapture(const CudaDevice& device, const Stream& stream, CudaCaptureMode mode) {
  return internal::OnDevice(*device.state(), "Beginning a capture", [&] {
    return cudaStreamBeginCapture(CudaDevice::Native(stream), NativeMode(mode));
  });
}

Expected<CudaGraph> CudaGraph::EndCapture(const CudaDevice& device, const Stream& stream) {
  cudaGraph_t graph = nullptr;
  Expected<void> ok = internal::OnDevice(*device.state(), "Ending a capture", [&] {
    return cudaStreamEndCapture(CudaDevice::Native(stream), &graph);
  });
  if (!ok) return ErrorOf(ok);
  return CudaGraph(Owned(graph, Destroy{device.state()}));
}

Expected<uint64_t> CudaGraph::NodeCount() const {
  size_t nodes = 0;
  Expected<void> ok =
      internal::OnDevice(*graph_.get_deleter().state, "Counting a graph's nodes",
                         [&] { return cudaGraphGetNodes(graph_.get(), nullptr, &nodes); });
  if (!ok) return ErrorOf(ok);
  return nodes;
}

Expected<CudaExecutableGraph> CudaGraph::Instantiate() const {
  const std::shared_ptr<internal::CudaState>& state = graph_.get_deleter().state;
  cudaGraphExec_t executable = nullptr;
  Expected<void> ok = internal::BesideCaptures(*state, "Instantiating a graph", [&] {
    return cudaGraphInstantiate(&executable, graph_.get(), /*flags=*/0);
  });
  if (!ok) return ErrorOf(ok);
  using Destroy = CudaExecutableGraph::Destroy;
  return CudaExecutableGraph(CudaExecutableGraph::Owned(executable, Destroy{state}));
}

void CudaGraph::Destroy::operator()(CUgraph_st* graph) const noexcept {
  static_cast<void>(internal::BesideCaptures(*state, "Destroying a graph",
                                             [&] { return cudaGraphDestroy(graph); }));
}

Expected<void> CudaExecutableGraph::Launch(const Stream& stream) const {
  return internal::OnDevice(*graph_.get_deleter().state, "Launching a graph", [&] {
    return cudaGraphLaunch(graph_.get(), CudaDevice::Native(stream));
  });
}

void CudaExecutableGraph::Destroy::operator()(CUgraphExec_st* graph) const noexcept {
  static_cast<void>(internal::BesideCaptures(*state, "Destroying an executable graph",
                                             [&] { return cudaGraphExecDestroy(graph); }));
}

}  // namespace h2d
