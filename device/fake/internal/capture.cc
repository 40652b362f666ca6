#include "h2d/device/fake/internal/capture.h"

#include <algorithm>
#include <utility>

namespace h2d::fake_internal {

CaptureBranch& Capture::BranchOf(const SimStream& stream) {
  return *std::find_if(branches.begin(), branches.end(),
                       [&](const CaptureBranch& branch) { return branch.stream == &stream; });
}

void Capture::Append(const SimStream& stream, GraphWork work) {
  CaptureBranch& branch = BranchOf(stream);
  const auto node = static_cast<uint32_t>(nodes.size());
  nodes.push_back({static_cast<size_t>(&branch - branches.data()),
                   std::exchange(branch.frontier, {node}), std::move(work)});
}

void Capture::Join(SimStream& stream, const std::vector<uint32_t>& frontier) {
  if (stream.capture != this) {
    stream.capture = this;
    branches.push_back({&stream, {}});
  }
  std::vector<uint32_t>& mine = BranchOf(stream).frontier;
  for (const uint32_t node : frontier) {
    if (std::find(mine.begin(), mine.end(), node) == mine.end()) mine.push_back(node);
  }
}

bool Capture::AllJoined() const {
  std::vector<bool> reached(nodes.size(), false);
  std::vector<uint32_t> left = branches.front().frontier;
  while (!left.empty()) {
    const uint32_t node = left.back();
    left.pop_back();
    if (reached[node]) continue;
    reached[node] = true;
    left.insert(left.end(), nodes[node].after.begin(), nodes[node].after.end());
  }
  return std::all_of(reached.begin(), reached.end(), [](bool r) { return r; });
}

}  // namespace h2d::fake_internal
