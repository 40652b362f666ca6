#include "h2d/device/fake/view/timeline.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

namespace h2d::fake_internal {
namespace {

constexpr size_t kColumn = 7;
constexpr size_t kMaxRows = 200;  // the newest

std::string Padded(std::string text, size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

// What a row of the time line is about: queries and inspections are left out unless they matter.
bool IsShown(const TraceRecord& record, const std::set<uint64_t>& marked) {
  if (marked.count(record.op.number) != 0) return true;
  switch (record.op.kind) {
    case OpKind::kInspect:
    case OpKind::kCreateEvent:
    case OpKind::kDestroyEvent:
      return false;
    case OpKind::kQuery:
    case OpKind::kHostWait:
      return record.phase == TracePhase::kDone;
    default:
      return true;
  }
}

class Renderer {
 public:
  Renderer(const Names& names, std::span<const Hazard> hazards) : names_(names) {
    for (const Hazard& hazard : hazards) {
      if (!hazard.first.lane.empty()) marked_.insert(hazard.first.number);
      if (!hazard.second.lane.empty()) marked_.insert(hazard.second.number);
    }
  }

  std::string Render(const Trace& trace) {
    std::vector<const TraceRecord*> shown;
    for (const TraceRecord& record : trace.records()) {
      if (IsShown(record, marked_)) shown.push_back(&record);
    }
    const size_t skipped = shown.size() > kMaxRows ? shown.size() - kMaxRows : 0;
    for (size_t i = skipped; i < shown.size(); ++i) {
      AddColumn(shown[i]->op.caller);
      AddColumn(shown[i]->op.lane);
    }
    std::string text = Header();
    if (skipped != 0) text += "  (" + std::to_string(skipped) + " earlier rows are not shown)\n";
    for (size_t i = skipped; i < shown.size(); ++i) text += Row(*shown[i]);
    return text;
  }

 private:
  void AddColumn(LaneIndex lane) { columns_.emplace(lane, 0); }

  std::string Header() {
    std::string text;
    size_t column = 0;
    for (auto& [lane, index] : columns_) {
      index = column++;
      text += "  " + std::to_string(index) + " = " + names_.lanes[lane] + "\n";
    }
    text += Padded("  time/ns", 14);
    for (size_t i = 0; i < column; ++i) text += Padded(std::to_string(i), kColumn);
    in_flight_.assign(column, 0);
    return text + "\n";
  }

  static bool RunsLater(const OperationInfo& op) {
    switch (op.kind) {
      case OpKind::kCopy:
      case OpKind::kBatch:
      case OpKind::kKernel:
      case OpKind::kHostFunction:
      case OpKind::kReadBack:
        return true;
      default:
        return false;
    }
  }

  std::string Row(const TraceRecord& record) {
    const OperationInfo& op = record.op;
    const size_t own = columns_[op.lane];
    std::string mark = record.phase == TracePhase::kComplete ? "*" : "+";
    if (!RunsLater(op)) mark = ".";
    if (marked_.count(op.number) != 0) mark = "!" + mark;
    std::string row = Padded("  " + std::to_string(record.time.count()), 14);
    for (size_t i = 0; i < in_flight_.size(); ++i) {
      std::string cell = in_flight_[i] != 0 ? "|" : " ";
      if (i == own) cell = mark + std::to_string(op.number);
      row += Padded(cell, kColumn);
    }
    if (RunsLater(op) && record.phase == TracePhase::kCall) ++in_flight_[own];
    if (RunsLater(op) && record.phase == TracePhase::kComplete) --in_flight_[own];
    std::string what = Describe(op, names_);
    if (record.phase == TracePhase::kComplete) what = "complete: " + what;
    if (record.phase == TracePhase::kDone) what += ": complete";
    if (record.phase == TracePhase::kPending) what += ": pending";
    if (op.caller != op.lane && record.phase == TracePhase::kCall) {
      what += ", called by " + names_.lanes[op.caller];
    }
    return row + what + "\n";
  }

  const Names& names_;
  std::set<uint64_t> marked_;
  std::map<LaneIndex, size_t> columns_;
  std::vector<int64_t> in_flight_;
};

}  // namespace

std::string RenderTimeline(const Trace& trace, const Names& names,
                           std::span<const Hazard> hazards) {
  std::string text = Renderer(names, hazards).Render(trace);
  for (const Hazard& hazard : hazards) text += hazard.ToString();
  return text;
}

}  // namespace h2d::fake_internal
