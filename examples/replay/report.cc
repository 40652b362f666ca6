#include "h2d/examples/replay/report.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "h2d/examples/replay/text_table.h"

namespace h2d::replay {
namespace {

constexpr size_t kShownNeverFit = 5;

// The value below which a share `q` of `values` lies.
uint64_t Quantile(std::vector<uint64_t> values, double q) {
  if (values.empty()) return 0;
  const auto at = static_cast<size_t>(q * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

// Adds rows for all columns at once.
class Report {
 public:
  explicit Report(std::span<const ReportColumn> columns) : columns_(columns) {}

  void Add(const std::string& label, const std::function<std::string(const ReplayResult&)>& cell) {
    std::vector<std::string> row = {label};
    for (const ReportColumn& column : columns_) row.push_back(cell(*column.result));
    table_.AddRow(std::move(row));
  }
  void Count(const std::string& label, const std::function<uint64_t(const ReplayResult&)>& number) {
    Add(label, [&](const ReplayResult& r) { return WithCommas(number(r)); });
  }
  void Share(const std::string& label, uint64_t StepCounts::*part) {
    Add(label, [part](const ReplayResult& r) { return PercentText(r.steps.*part, r.steps.steps); });
  }
  void Titles() {
    std::vector<std::string> row = {""};
    for (const ReportColumn& column : columns_) row.emplace_back(column.title);
    table_.AddRow(std::move(row));
  }

  std::string ToString() const { return table_.ToString(); }

 private:
  std::span<const ReportColumn> columns_;
  TextTable table_;
};

void AddRequests(Report& report) {
  report.Count("requests", [](const ReplayResult& r) { return r.requests; });
  report.Count("  finished", [](const ReplayResult& r) { return r.scheduling.finished; });
  report.Count("  can never fit", [](const ReplayResult& r) { return r.never_fit.size(); });
  report.Count("  preemptions", [](const ReplayResult& r) { return r.scheduling.preempted; });
  report.Count("  most at once", [](const ReplayResult& r) { return r.scheduling.most_rows; });
}

void AddSteps(Report& report) {
  report.Count("steps", [](const ReplayResult& r) { return r.steps.steps; });
  report.Count("  most in flight", [](const ReplayResult& r) { return r.steps.most_in_flight; });
  report.Share("  with a skip", &StepCounts::with_skip);
  report.Share("  with a trim", &StepCounts::with_trim);
  report.Share("  with a wait across streams", &StepCounts::with_stream_wait);
  report.Share("  with a full ring", &StepCounts::with_full_ring);
}

// Of what the graphs read. Bytes between fields travel with them, so that more may be sent than
// read.
uint64_t BytesSaved(const ReplayResult& result) {
  const uint64_t read = result.steps.verified_bytes;
  return read - std::min(result.stager.bytes_sent, read);
}

void AddCopies(Report& report) {
  report.Count("copies asked", [](const ReplayResult& r) { return r.stager.copies_asked; });
  report.Count("  issued in full", [](const ReplayResult& r) { return r.stager.copies_issued; });
  report.Count("  trimmed", [](const ReplayResult& r) { return r.stager.copies_trimmed; });
  report.Count("  skipped", [](const ReplayResult& r) { return r.stager.copies_skipped; });
  report.Count("  most of one step", [](const ReplayResult& r) { return r.steps.most_copies; });
  report.Add("bytes that the graphs read",
             [](const ReplayResult& r) { return BytesText(r.steps.verified_bytes); });
  report.Add("  asked for by the host",
             [](const ReplayResult& r) { return BytesText(r.stager.bytes_asked); });
  report.Add("  sent", [](const ReplayResult& r) { return BytesText(r.stager.bytes_sent); });
  report.Add("  saved", [](const ReplayResult& r) {
    return PercentText(BytesSaved(r), r.steps.verified_bytes);
  });
}

void AddHost(Report& report, bool simulated_time) {
  const std::string time = simulated_time ? "simulated time" : "host time";
  report.Add(time + " to stage a step, median",
             [](const ReplayResult& r) { return DurationText(Quantile(r.steps.staging_ns, 0.5)); });
  report.Add("  99 of 100 below", [](const ReplayResult& r) {
    return DurationText(Quantile(r.steps.staging_ns, 0.99));
  });
  report.Count("slots in use at most",
               [](const ReplayResult& r) { return r.stager.slots_in_use_most; });
  report.Count("  waits for a slot", [](const ReplayResult& r) { return r.stager.slot_waits; });
  report.Count("  growths", [](const ReplayResult& r) { return r.stager.growths; });
  report.Add("  pinned bytes at most",
             [](const ReplayResult& r) { return BytesText(r.stager.pinned_bytes_most); });
}

void AddVerdict(Report& report) {
  report.Count("steps verified", [](const ReplayResult& r) { return r.steps.verified_steps; });
  report.Count("  with a mismatch", [](const ReplayResult& r) { return r.steps.mismatches; });
  report.Count("hazards", [](const ReplayResult& r) { return r.hazards; });
  report.Add("real time", [](const ReplayResult& r) {
    return DurationText(static_cast<uint64_t>(r.seconds * 1e9));
  });
}

}  // namespace

std::string ReportTable(std::span<const ReportColumn> columns) {
  Report report(columns);
  report.Titles();
  AddRequests(report);
  AddSteps(report);
  AddCopies(report);
  AddHost(report, columns.front().result->simulated_time);
  AddVerdict(report);
  return report.ToString();
}

std::string NeverFitText(std::span<const TraceRequest> trace, const SchedulerOptions& options,
                         std::span<const uint32_t> never_fit) {
  std::string text;
  for (const uint32_t request : never_fit.first(std::min(never_fit.size(), kShownNeverFit))) {
    text += "Request " + std::to_string(request + 1) + " of the trace needs " +
            WithCommas(Scheduler::BlocksOf(trace[request], options.block_size)) +
            " blocks and the cache has " + WithCommas(options.kv_blocks) +
            ": it can never fit and did not run.\n";
  }
  if (never_fit.size() > kShownNeverFit) {
    text += WithCommas(never_fit.size() - kShownNeverFit) + " more can never fit either.\n";
  }
  return text;
}

}  // namespace h2d::replay
