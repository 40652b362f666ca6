// Captures: which calls they forbid, what spreads them, and the launch of what they recorded.
#include <algorithm>
#include <string>
#include <utility>

#include "h2d/device/fake/internal/core.h"
#include "h2d/device/fake/internal/cuda_errors.h"

namespace h2d::fake_internal {

Unexpected Core::InvalidatedCapture() {
  return MakeError(ErrorCode::kDevice, "The capture of this stream is invalid.",
                   cuda_errors::kStreamCaptureInvalidated);
}

Capture* Core::FindCapture(uint64_t id) noexcept {
  for (const auto& capture : captures_) {
    if (capture->id == id) return capture.get();
  }
  return nullptr;
}

Expected<void> Core::ForbiddenByCaptures(const Caller& caller, OpKind kind) {
  const CaptureMode mode = threads_[caller.thread].mode;
  if (mode == CaptureMode::kRelaxed) return {};
  bool forbidden = false;
  for (const auto& capture : captures_) {
    const bool own = capture->thread == caller.thread && capture->mode != CaptureMode::kRelaxed;
    const bool global = capture->mode == CaptureMode::kGlobal && mode == CaptureMode::kGlobal;
    if (!own && !global) continue;
    forbidden = true;
    Invalidate(*capture);
  }
  if (!forbidden) return {};
  return MakeError(ErrorCode::kDevice,
                   "A " + std::string(ToString(kind)) +
                       " is not allowed while a capture is under way in this mode: the capture is "
                       "invalid.",
                   cuda_errors::kStreamCaptureUnsupported);
}

Expected<void> Core::ImplicitCapture(const SimStream& stream, bool invalidate) {
  if (&stream != legacy_) return {};
  bool implicit = false;
  for (const auto& capture : captures_) {
    for (const CaptureBranch& branch : capture->branches) {
      if (branch.stream == nullptr || !branch.stream->blocking) continue;
      implicit = true;
      if (invalidate) Invalidate(*capture);
    }
  }
  if (!implicit) return {};
  return MakeError(ErrorCode::kDevice,
                   "The legacy default stream would become part of a blocking stream's capture.",
                   cuda_errors::kStreamCaptureImplicit);
}

Expected<bool> Core::Captured(SimStream& stream, GraphWork work) {
  if (stream.capture == nullptr) return false;
  if (stream.capture->invalidated) return InvalidatedCapture();
  stream.capture->Append(stream, std::move(work));
  return true;
}

Unexpected Core::CapturedEvent(const EventRecord& event) {
  if (Capture* capture = FindCapture(event.captured_by)) Invalidate(*capture);
  return MakeError(ErrorCode::kDevice, "The event was last recorded in a stream capture.",
                   cuda_errors::kCapturedEvent);
}

Expected<void> Core::WaitInCapture(SimStream& stream, const EventRecord& event, bool& captured) {
  captured = false;
  Capture* from = FindCapture(event.captured_by);
  if (stream.capture == nullptr && event.captured_by == 0) return {};
  captured = true;
  if (stream.capture == nullptr && from == nullptr) return CapturedEvent(event);  // it has ended
  if (stream.capture == nullptr && stream.kind == StreamKind::kLegacyDefault) {
    Invalidate(*from);
    return MakeError(ErrorCode::kDevice, "The legacy default stream cannot be captured.",
                     cuda_errors::kStreamCaptureImplicit);
  }
  if (stream.capture != nullptr && stream.capture->invalidated) return InvalidatedCapture();
  if (stream.capture != nullptr && from != stream.capture) {
    if (event.captured_by == 0 && event.marker == nullptr) return {};  // never recorded: no wait
    Invalidate(*stream.capture);
    if (from != nullptr) Invalidate(*from);
    return MakeError(ErrorCode::kDevice,
                     "A stream under capture waits for an event from outside its capture.",
                     cuda_errors::kStreamCaptureIsolation);
  }
  if (from->invalidated) return InvalidatedCapture();
  from->Join(stream, event.captured_after);
  return {};
}

std::unique_ptr<Capture> Core::TakeCapture(Capture& capture) {
  for (const CaptureBranch& branch : capture.branches) {
    if (branch.stream != nullptr) branch.stream->capture = nullptr;
  }
  const auto entry = std::find_if(captures_.begin(), captures_.end(),
                                  [&](const auto& held) { return held.get() == &capture; });
  std::unique_ptr<Capture> taken = std::move(*entry);
  captures_.erase(entry);
  return taken;
}

CaptureMode Core::ExchangeCaptureMode(CaptureMode mode) {
  const Lock lock = LockUnlessInKernel();
  return std::exchange(threads_[WhoCalls().thread].mode, mode);
}

Expected<void> Core::BeginCapture(const Stream& stream, CaptureMode mode) {
  if (Expected<void> ok = CheckInspect(identity_, stream); !ok) return ok;
  Lock lock;
  const Expected<Caller> caller = Enter(lock, OpKind::kBeginCapture, Time(500));
  if (!caller) return Unexpected(caller.error());
  const Expected<SimStream*> found = Resolve(stream, *caller, OpKind::kBeginCapture);
  if (!found) return Unexpected(found.error());
  SimStream& target = **found;
  if (&target == legacy_) {
    return MakeError(ErrorCode::kDevice, "The legacy default stream cannot be captured.",
                     cuda_errors::kStreamCaptureUnsupported);
  }
  if (target.capture != nullptr) {
    return MakeError(ErrorCode::kDevice, "The stream is under capture already.",
                     cuda_errors::kInvalidValue);
  }
  auto capture = std::make_unique<Capture>();
  capture->id = next_capture_++;
  capture->mode = mode;
  capture->thread = caller->thread;
  capture->Join(target, {});
  captures_.push_back(std::move(capture));
  Note(TracePhase::kCall, NewOperation(*caller, OpKind::kBeginCapture, target.lane));
  return {};
}

Expected<FakeGraph> Core::EndCapture(const Stream& stream) {
  if (Expected<void> ok = CheckInspect(identity_, stream); !ok) return ErrorOf(ok);
  Lock lock;
  const Expected<Caller> caller = Enter(lock, OpKind::kEndCapture, Time(500));
  if (!caller) return Unexpected(caller.error());
  const Expected<SimStream*> found = Resolve(stream, *caller, OpKind::kEndCapture);
  if (!found) return Unexpected(found.error());
  Capture* capture = (*found)->capture;
  if (capture == nullptr || capture->branches.front().stream != *found) {
    if (capture != nullptr) Invalidate(*capture);
    return MakeError(ErrorCode::kDevice, "No capture began on this stream.",
                     cuda_errors::kStreamCaptureUnmatched);
  }
  if (capture->thread != caller->thread && capture->mode != CaptureMode::kRelaxed) {
    return MakeError(ErrorCode::kDevice, "Another thread began the capture of this stream.",
                     cuda_errors::kStreamCaptureWrongThread);
  }
  const std::unique_ptr<Capture> ended = TakeCapture(*capture);
  Note(TracePhase::kCall, NewOperation(*caller, OpKind::kEndCapture, (*found)->lane));
  if (ended->invalidated) return InvalidatedCapture();
  if (!ended->AllJoined()) {
    return MakeError(ErrorCode::kDevice,
                     "Work was captured on another stream that the first one never waited for.",
                     cuda_errors::kStreamCaptureUnjoined);
  }
  auto graph = std::make_unique<Graph>();
  graph->id = next_graph_++;
  graph->branches = ended->branches.size();
  graph->nodes = std::move(ended->nodes);
  const FakeGraph name(graph->id, graph->nodes.size());
  graphs_.emplace(graph->id, std::move(graph));
  return name;
}

Expected<void> Core::LaunchGraph(const FakeGraph& name, const Stream& stream) {
  if (Expected<void> ok = CheckInspect(identity_, stream); !ok) return ok;
  Lock lock;
  const Expected<Caller> caller =
      Enter(lock, OpKind::kGraphLaunch, options_.latencies.host_launch_call);
  if (!caller) return Unexpected(caller.error());
  const Expected<SimStream*> found = Resolve(stream, *caller, OpKind::kGraphLaunch);
  if (!found) return Unexpected(found.error());
  const auto graph = graphs_.find(name.id());
  if (graph == graphs_.end()) return InvalidArgument("The graph is none of this device.");
  SimStream& target = **found;
  if (Expected<void> ok = ImplicitCapture(target, true); !ok) return ok;
  if (target.capture != nullptr) {
    if (target.capture->invalidated) return InvalidatedCapture();
    CaptureGraph(target, *graph->second);
    return {};
  }
  return IssueGraph(*caller, target, *graph->second);
}

// A graph launched into a capture becomes part of it. Its first branch is that of the stream; each
// other stays one, or what is unordered inside the graph would be ordered by its place.
void Core::CaptureGraph(SimStream& stream, const Graph& graph) {
  Capture& capture = *stream.capture;
  const size_t other_branches = capture.branches.size() - 1;  // `branch` of the graph's second: + 1
  capture.branches.resize(capture.branches.size() + graph.branches - 1);
  CaptureBranch& branch = capture.BranchOf(stream);
  const size_t index = static_cast<size_t>(&branch - capture.branches.data());
  const auto first = static_cast<uint32_t>(capture.nodes.size());
  const std::vector<uint32_t> before = branch.frontier;
  for (const GraphNode& node : graph.nodes) {
    GraphNode copy{node.branch == 0 ? index : other_branches + node.branch, before, node.work};
    for (const uint32_t earlier : node.after) copy.after.push_back(first + earlier);
    capture.nodes.push_back(std::move(copy));
    branch.frontier.push_back(static_cast<uint32_t>(capture.nodes.size() - 1));
  }
}

Expected<void> Core::IssueGraph(const Caller& caller, SimStream& stream, Graph& graph) {
  OperationInfo info = NewOperation(caller, OpKind::kGraphLaunch, stream.lane);
  info.object = static_cast<uint32_t>(graph.id);
  Note(TracePhase::kCall, info);
  ++counters_.graph_launches;
  OrderWithLegacy(caller, stream);
  while (graph.streams.size() + 1 < graph.branches) {
    graph.streams.push_back(&AddStream(StreamKind::kOrdinary, false,
                                       "graph " + std::to_string(graph.id) + " branch " +
                                           std::to_string(graph.streams.size() + 1)));
  }
  if (graph.launched != nullptr) {  // launches of one executable run one after another
    if (detector_.enabled()) detector_.clock(stream.lane).Join(graph.launched_clock);
    EnqueueWait(stream, graph.launched, info);
  }
  const Epoch epoch = detector_.BeginIssue(caller.lane, stream.lane);
  detector_.EndIssue(caller.lane, epoch);
  for (SimStream* branch : graph.streams) WaitForTail(*branch, stream);
  Expected<void> issued = IssueNodes(caller, stream, graph);
  for (SimStream* branch : graph.streams) WaitForTail(stream, *branch);
  graph.launched = engine_.TailOf(stream);
  if (detector_.enabled()) graph.launched_clock = detector_.clock(stream.lane);
  return issued;
}

Expected<void> Core::IssueNodes(const Caller& caller, SimStream& stream, Graph& graph) {
  struct End {
    MarkerRef marker;
    Clock clock;
  };
  std::vector<End> ends(graph.nodes.size());
  std::vector<bool> awaited(graph.nodes.size(), false);  // by a node of another branch
  for (const GraphNode& node : graph.nodes) {
    for (const uint32_t earlier : node.after) {
      if (graph.nodes[earlier].branch != node.branch) awaited[earlier] = true;
    }
  }
  const auto stream_of = [&](size_t branch) -> SimStream& {
    return branch == 0 ? stream : *graph.streams[branch - 1];
  };
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const GraphNode& node = graph.nodes[i];
    SimStream& target = stream_of(node.branch);
    for (const uint32_t earlier : node.after) {
      if (graph.nodes[earlier].branch == node.branch) continue;
      if (detector_.enabled()) detector_.clock(target.lane).Join(ends[earlier].clock);
      OperationInfo info;
      info.caller = info.lane = target.lane;
      EnqueueWait(target, ends[earlier].marker, info);
    }
    if (Expected<void> ok = node.work(caller, target); !ok) return ok;
    if (awaited[i]) ends[i] = {engine_.TailOf(target), detector_.clock(target.lane)};
  }
  return {};
}

}  // namespace h2d::fake_internal
