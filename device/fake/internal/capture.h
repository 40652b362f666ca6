// Stream captures and the graphs they become.
#ifndef H2D_DEVICE_FAKE_INTERNAL_CAPTURE_H_
#define H2D_DEVICE_FAKE_INTERNAL_CAPTURE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "h2d/device/error.h"
#include "h2d/device/fake/fake_device.h"
#include "h2d/device/fake/internal/engine.h"

namespace h2d::fake_internal {

struct Caller;

// Issues what was captured on a stream, anew at each launch: so a copy re-reads its source.
using GraphWork = std::function<Expected<void>(const Caller&, SimStream&)>;

struct GraphNode {
  size_t branch = 0;
  std::vector<uint32_t> after;  // nodes
  GraphWork work;
};

// One stream's part in a capture, or a branch of a graph that was launched into it.
struct CaptureBranch {
  SimStream* stream = nullptr;     // null: of such a graph
  std::vector<uint32_t> frontier;  // the nodes that its next one comes after
};

struct Capture {
  uint64_t id = 0;
  CaptureMode mode = CaptureMode::kGlobal;
  uint64_t thread = 0;  // that began it
  bool invalidated = false;
  std::vector<CaptureBranch> branches;  // the first is the origin's
  std::vector<GraphNode> nodes;

  CaptureBranch& BranchOf(const SimStream& stream);
  void Append(const SimStream& stream, GraphWork work);
  // Makes `stream` part of the capture, if it is not, and its next node come after `frontier`.
  void Join(SimStream& stream, const std::vector<uint32_t>& frontier);
  // Whether all that was captured comes before the origin's next node.
  bool AllJoined() const;
};

// An executable graph. Branches run on streams of its own, but for the first, which runs on the
// stream it is launched on.
struct Graph {
  uint64_t id = 0;
  size_t branches = 0;
  std::vector<GraphNode> nodes;
  std::vector<SimStream*> streams;  // of branches 1, 2, ...
  MarkerRef launched;               // the end of its last launch
  Clock launched_clock;
};

}  // namespace h2d::fake_internal

#endif  // H2D_DEVICE_FAKE_INTERNAL_CAPTURE_H_
