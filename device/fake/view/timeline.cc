#include "h2d/device/fake/view/timeline.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "h2d/device/fake/view/text_wrap.h"

namespace h2d::fake_internal {
namespace {

constexpr size_t kMaxRows = 200;
constexpr size_t kRowsAfterHazard = 20;
constexpr size_t kMinTextColumns = 28;  // beside the lanes

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
  Renderer(const Names& names, std::span<const Hazard> hazards, size_t columns)
      : names_(names), hazards_(hazards), columns_(std::max(columns, kMinTimelineColumns)) {
    for (const Hazard& hazard : hazards) {
      if (!hazard.first.lane.empty()) marked_.insert(hazard.first.number);
      if (!hazard.second.lane.empty()) marked_.insert(hazard.second.number);
    }
  }

  std::string Render(const Trace& trace) {
    for (const TraceRecord& record : trace.records()) {
      if (IsShown(record, marked_)) rows_.push_back(&record);
    }
    std::string text = ChooseRows();
    if (!rows_.empty()) text = LayOut() + text;
    for (const TraceRecord* record : rows_) text += Row(*record);
    for (const Hazard& hazard : hazards_) text += InLines(hazard.ToString(), 10);
    return text;
  }

 private:
  // Keeps the rows around the first hazard, or the newest; answers what to say about the others.
  std::string ChooseRows() {
    if (rows_.size() <= kMaxRows) return {};
    size_t end = rows_.size();
    if (!hazards_.empty() && !hazards_.front().second.lane.empty()) {
      while (end > 0 && rows_[end - 1]->op.number != hazards_.front().second.number) --end;
      end = std::min(end == 0 ? rows_.size() : end + kRowsAfterHazard, rows_.size());
    }
    const size_t begin = end > kMaxRows ? end - kMaxRows : 0;
    const size_t after = rows_.size() - std::max(end, begin + kMaxRows);
    const std::string text = "  (" + std::to_string(begin) + " earlier and " +
                             std::to_string(after) + " later rows are not shown)\n";
    rows_ = {rows_.begin() + static_cast<std::ptrdiff_t>(begin),
             rows_.end() - static_cast<std::ptrdiff_t>(after)};
    return text;
  }

  // Widths, the lanes that are shown, and the lines above the rows.
  std::string LayOut() {
    uint64_t largest = 0;
    size_t time = 7;
    std::map<LaneIndex, size_t> uses;
    std::set<LaneIndex> marked;
    std::set<LaneIndex> callers;
    for (const TraceRecord* record : rows_) {
      const OperationInfo& op = record->op;
      largest = std::max(largest, op.number);
      time = std::max(time, std::to_string(record->time.count()).size());
      ++uses[op.lane];
      if (marked_.count(op.number) != 0) marked.insert(op.lane);
      callers.insert(op.caller);
      lane_of_.emplace(op.number, op.lane);
    }
    several_callers_ = callers.size() > 1;
    cell_ = std::to_string(largest).size() + 3;
    time_ = time + 3;
    const size_t room = std::max<size_t>((columns_ - time_ - kMinTextColumns) / cell_, 1);
    std::vector<LaneIndex> lanes;
    for (const auto& [lane, count] : uses) lanes.push_back(lane);
    std::stable_sort(lanes.begin(), lanes.end(), [&](LaneIndex a, LaneIndex b) {
      return std::pair(marked.count(a), uses[a]) > std::pair(marked.count(b), uses[b]);
    });
    const size_t left_out = lanes.size() - std::min(lanes.size(), room);
    lanes.resize(lanes.size() - left_out);
    std::sort(lanes.begin(), lanes.end());
    return Header(lanes, left_out);
  }

  // The names of the lanes, and their columns.
  std::string Header(const std::vector<LaneIndex>& lanes, size_t left_out) {
    std::string legend;
    std::string numbers = Padded("  time/ns", time_);
    for (const LaneIndex lane : lanes) {
      const std::string index = std::to_string(cells_.size());
      cells_.emplace(lane, cells_.size());
      legend += (legend.empty() ? "" : ", ") + index + " = " + names_.lanes[lane];
      numbers += Padded(index, cell_);
    }
    if (left_out != 0) legend += "; " + std::to_string(left_out) + " lanes are not shown";
    in_flight_.assign(cells_.size(), {});
    numbers.erase(numbers.find_last_not_of(' ') + 1);
    return InLines("  " + legend + "\n", 2) + numbers + "\n";
  }

  std::string Row(const TraceRecord& record) {
    const OperationInfo& op = record.op;
    const auto own = cells_.find(op.lane);
    if (own == cells_.end()) return {};
    const bool completes = record.phase == TracePhase::kComplete;
    std::string mark = !RunsLater(op.kind) ? "." : completes ? "*" : "+";
    if (marked_.count(op.number) != 0) mark = "!" + mark;
    std::string lanes = Padded("  " + std::to_string(record.time.count()), time_);
    for (size_t cell = 0; cell < in_flight_.size(); ++cell) {
      lanes += Padded(cell == own->second ? mark + std::to_string(op.number) : Bar(cell), cell_);
    }
    if (RunsLater(op.kind) && record.phase == TracePhase::kCall) {
      in_flight_[own->second].insert(op.number);
    }
    if (completes) in_flight_[own->second].erase(op.number);
    return WithText(lanes, What(record)) + MissingEdges(record);
  }

  std::string What(const TraceRecord& record) const {
    const OperationInfo& op = record.op;
    std::string what = std::string(ToString(op.kind)) + DetailsOf(op, names_);
    if (record.phase == TracePhase::kComplete) what = "complete: " + what;
    if (record.phase == TracePhase::kDone) what += ": complete";
    if (record.phase == TracePhase::kPending) what += ": pending";
    if (several_callers_ && op.caller != op.lane && record.phase == TracePhase::kCall) {
      what += ", called by " + names_.lanes[op.caller];
    }
    return what;
  }

  // What is drawn on a lane where nothing happens now.
  std::string Bar(size_t cell) const {
    const std::set<uint64_t>& ops = in_flight_[cell];
    if (ops.empty()) return " ";
    const bool hazard = std::any_of(ops.begin(), ops.end(),
                                    [&](uint64_t number) { return marked_.count(number) != 0; });
    return hazard ? "#" : "|";
  }

  // For each hazard whose second access is the one of this row.
  std::string MissingEdges(const TraceRecord& record) {
    std::string text;
    if (marked_.count(record.op.number) == 0 || !drawn_.insert(record.op.number).second) return {};
    for (const Hazard& hazard : hazards_) {
      if (hazard.second.lane.empty() || hazard.second.number != record.op.number) continue;
      std::string lanes(time_, ' ');
      for (size_t cell = 0; cell < in_flight_.size(); ++cell) lanes += Padded(Bar(cell), cell_);
      const size_t to = time_ + cells_[record.op.lane] * cell_;
      const auto known = lane_of_.find(hazard.first.number);
      if (!hazard.first.lane.empty() && known != lane_of_.end() &&
          cells_.count(known->second) != 0) {
        const size_t from = time_ + cells_[known->second] * cell_;
        for (size_t at = std::min(from, to); at < std::max(from, to); ++at) lanes[at] = '-';
        lanes[from] = 'o';
      }
      lanes[to] = 'x';
      text += WithText(lanes, "HAZARD: no edge: " + hazard.missing);
    }
    return text;
  }

  // `lanes`, then `what` in as many lines as it needs, beside the lanes as they go on.
  std::string WithText(const std::string& lanes, const std::string& what) const {
    const size_t room = columns_ - lanes.size();
    std::string text;
    for (const std::string_view line : WrapText(what, room, room - 2)) {
      if (text.empty()) {
        text = lanes;
      } else {
        text.append(time_, ' ');
        for (size_t cell = 0; cell < in_flight_.size(); ++cell) text += Padded(Bar(cell), cell_);
        text += "  ";
      }
      text.append(line);
      text.erase(text.find_last_not_of(' ') + 1);
      text += "\n";
    }
    return text;
  }

  // Each line of `text` in lines that fit, the later ones indented.
  std::string InLines(const std::string& text, size_t indent) const {
    std::string lines;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      const std::string_view whole = std::string_view(text).substr(at, end - at);
      bool first = true;
      for (const std::string_view line : WrapText(whole, columns_, columns_ - indent)) {
        if (!std::exchange(first, false)) lines.append(indent, ' ');
        lines.append(line);
        lines += "\n";
      }
      at = end + 1;
    }
    return lines;
  }

  const Names& names_;
  const std::span<const Hazard> hazards_;
  const size_t columns_;
  std::vector<const TraceRecord*> rows_;
  std::set<uint64_t> marked_;  // operations that are part of a hazard
  std::set<uint64_t> drawn_;   // those whose missing edges are drawn
  std::map<uint64_t, LaneIndex> lane_of_;
  std::map<LaneIndex, size_t> cells_;
  std::vector<std::set<uint64_t>> in_flight_;  // by cell
  size_t time_ = 0;                            // widths
  size_t cell_ = 0;
  bool several_callers_ = false;
};

}  // namespace

std::string RenderTimeline(const Trace& trace, const Names& names, std::span<const Hazard> hazards,
                           size_t columns) {
  return Renderer(names, hazards, columns).Render(trace);
}

}  // namespace h2d::fake_internal
