#include "h2d/device/fake/view/chrome_trace.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace h2d::fake_internal {
namespace {

constexpr int kHost = 1;  // process numbers
constexpr int kStreams = 2;
// Perfetto takes thread 0 for the idle thread, and a thread that has its process's number for the
// main thread; releases before August 2025 drew both as one. Lanes get numbers above either.
constexpr uint64_t kFirstThread = 10;
// A call is drawn as long as the time since its lane's last one, but no longer than this.
constexpr Time kLongestCall{1'000};

std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
      out += escaped;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

// The format counts in microseconds.
std::string Microseconds(Time time) {
  char text[32];
  std::snprintf(text, sizeof text, "%lld.%03lld", static_cast<long long>(time.count() / 1000),
                static_cast<long long>(time.count() % 1000));
  return text;
}

// Where and when something is drawn.
struct Slice {
  int process = kHost;
  LaneIndex lane = 0;
  Time begin{0};
  Time end{0};
};

class Writer {
 public:
  explicit Writer(const Names& names) : names_(names) {}

  std::string Write(const Trace& trace, std::span<const Hazard> hazards) {
    for (const Hazard& hazard : hazards) {
      if (!hazard.first.lane.empty()) marked_.insert(hazard.first.number);
      if (!hazard.second.lane.empty()) marked_.insert(hazard.second.number);
    }
    for (const TraceRecord& record : trace.records()) Add(record);
    for (const auto& [number, op] : in_flight_) AddOperation(op, now_, true);
    for (const Hazard& hazard : hazards) AddHazard(hazard);
    AddNames();
    return "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n" + events_ + "\n]}\n";
  }

 private:
  void Add(const TraceRecord& record) {
    const OperationInfo& op = record.op;
    now_ = std::max(now_, record.time);
    if (record.phase == TracePhase::kComplete) {
      in_flight_.erase(op.number);
      AddOperation(op, record.time, false);
      return;
    }
    const Slice call = CallAt(op.caller, record.time);
    calls_[op.number] = call;
    std::string name(ToString(op.kind));
    if (record.phase == TracePhase::kDone) name += ": complete";
    if (record.phase == TracePhase::kPending) name += ": pending";
    Event("X", call, name, Details(op) + Duration(call));
    if (RunsLater(op.kind) && record.phase == TracePhase::kCall) in_flight_.emplace(op.number, op);
  }

  // Calls of one lane follow one another or are parts of the same one: slices never half overlap.
  Slice CallAt(LaneIndex lane, Time time) {
    lanes_.emplace(lane, kHost);
    Slice& last = last_call_.emplace(lane, Slice{kHost, lane, Time(0), Time(0)}).first->second;
    if (time > last.end) {
      last.begin = std::max(last.end, time - std::min(time, kLongestCall));
      last.end = time;
    }
    return last;
  }

  void AddOperation(const OperationInfo& op, Time end, bool unfinished) {
    lanes_.emplace(op.lane, kStreams);
    Time& free = free_[op.lane];
    const Slice slice{kStreams, op.lane, std::min(std::max(free, op.time), end), end};
    free = end;
    Event("X", slice, (marked_.count(op.number) != 0 ? "! " : "") + std::string(ToString(op.kind)),
          Details(op) + Duration(slice) + (unfinished ? ",\"cname\":\"terrible\"" : ""));
    const auto call = calls_.find(op.number);
    if (call != calls_.end()) Arrow("enqueue", op.number, call->second, slice);
  }

  void AddHazard(const Hazard& hazard) {
    const std::string name = "hazard: " + std::string(ToString(hazard.kind));
    const std::string words = ",\"args\":{\"hazard\":" + Quoted(hazard.ToString()) +
                              ",\"missing\":" + Quoted(hazard.missing) + "},\"s\":\"t\"";
    const auto first = calls_.find(hazard.first.number);
    const auto second = calls_.find(hazard.second.number);
    const bool has_first = !hazard.first.lane.empty() && first != calls_.end();
    const bool has_second = !hazard.second.lane.empty() && second != calls_.end();
    if (has_first) Event("i", first->second, name + " (first access)", words);
    if (has_second) Event("i", second->second, name + " (second access)", words);
    if (has_first && has_second) {
      Arrow("missing edge", next_edge_++, first->second, second->second);
    }
  }

  // An arrow binds to the slice that encloses its end: both ends lie where their slices begin.
  void Arrow(std::string_view name, uint64_t id, const Slice& from, const Slice& to) {
    const std::string same =
        ",\"id\":" + std::to_string(id) + ",\"cat\":" + Quoted(name) + ",\"bp\":\"e\"";
    Event("s", from, name, same);
    Event("f", to, name, same);
  }

  void AddNames() {
    const auto named = [](std::string_view name) {
      return ",\"args\":{\"name\":" + Quoted(name) + "}";
    };
    Event("M", kHost, kHost, Time(0), "process_name", named("host"));
    Event("M", kStreams, kStreams, Time(0), "process_name", named("streams"));
    for (const auto& [lane, process] : lanes_) {
      Event("M", {process, lane, Time(0), Time(0)}, "thread_name", named(names_.lanes[lane]));
    }
  }

  std::string Details(const OperationInfo& op) const {
    return ",\"args\":{\"operation\":" + Quoted(Describe(op, names_)) +
           ",\"number\":" + std::to_string(op.number) +
           ",\"hazard\":" + (marked_.count(op.number) != 0 ? "true" : "false") + "}";
  }
  static std::string Duration(const Slice& slice) {
    return ",\"dur\":" + Microseconds(slice.end - slice.begin);
  }

  void Event(const char* phase, const Slice& at, std::string_view name, const std::string& more) {
    Event(phase, at.process, kFirstThread + at.lane, at.begin, name, more);
  }
  void Event(const char* phase, int process, uint64_t thread, Time time, std::string_view name,
             const std::string& more) {
    events_ += events_.empty() ? "" : ",\n";
    events_ += std::string("{\"ph\":\"") + phase + "\",\"pid\":" + std::to_string(process) +
               ",\"tid\":" + std::to_string(thread) + ",\"ts\":" + Microseconds(time) +
               ",\"name\":" + Quoted(name) + more + "}";
  }

  const Names& names_;
  std::string events_;
  Time now_{0};
  std::set<uint64_t> marked_;
  std::set<std::pair<LaneIndex, int>> lanes_;  // that have events, with their process
  std::map<LaneIndex, Slice> last_call_;
  std::map<LaneIndex, Time> free_;  // when the stream's last operation completed
  std::map<uint64_t, Slice> calls_;
  std::map<uint64_t, OperationInfo> in_flight_;
  uint64_t next_edge_ = 0;
};

}  // namespace

std::string RenderChromeTrace(const Trace& trace, const Names& names,
                              std::span<const Hazard> hazards) {
  return Writer(names).Write(trace, hazards);
}

}  // namespace h2d::fake_internal
