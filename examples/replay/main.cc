// The main job: `bazel run -c opt //examples:replay -- --help`.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "h2d/examples/replay/device_kind.h"
#include "h2d/examples/replay/flags.h"
#include "h2d/examples/replay/locate_trace.h"
#include "h2d/examples/replay/machine_factory.h"
#include "h2d/examples/replay/progress.h"
#include "h2d/examples/replay/replay.h"
#include "h2d/examples/replay/report.h"
#include "h2d/examples/replay/staging_way.h"
#include "h2d/examples/replay/text_table.h"
#include "h2d/examples/replay/trace.h"

namespace h2d::replay {
namespace {

constexpr int kFound = 1;      // a mismatch, a hazard, an error of the device
constexpr int kCannotRun = 2;  // bad flags, a bad trace

constexpr char kFakeNote[] =
    "(Times are simulated: the device's calls, without what the host does between them, which\n"
    "--device=host shows.)\n";

int Fail(int status, const std::string& message) {
  std::fprintf(stderr, "replay: %s\n", message.c_str());
  return status;
}

Expected<std::vector<TraceRequest>> LoadTrace(const Flags& flags, const std::string& argv0) {
  const std::string path =
      flags.trace.empty() ? LocateShippedTrace(argv0) : LocateTrace(flags.trace);
  if (path.empty()) {
    return InvalidArgument(
        "The trace that ships with the project is not beside this program: give one with --trace.");
  }
  Expected<std::vector<TraceRequest>> trace = ReadTrace(path);
  if (trace && flags.requests > 0 && flags.requests < trace->size()) {
    trace->resize(flags.requests);
  }
  return trace;
}

struct NamedResult {
  std::string_view name;
  ReplayResult result;
};

Expected<NamedResult> RunOnce(const std::vector<TraceRequest>& trace, DeviceKind device,
                              const ReplayOptions& options) {
  Expected<std::unique_ptr<Machine>> machine = NewMachine(device, options.seed);
  if (!machine) return ErrorOf(machine);
  const std::string_view name =
      IsStagedByHand(options.plant) ? "by hand" : ToString(options.staging);
  Progress progress(name, static_cast<uint32_t>(trace.size()));
  Expected<ReplayResult> result =
      Replay(trace, options, **machine, [&](uint32_t done) { progress.Show(done); });
  if (!result) return ErrorOf(result);
  return NamedResult{name, *std::move(result)};
}

// One run, or with `--compare` one for each way to stage, until one goes wrong.
Expected<std::vector<NamedResult>> RunAll(const std::vector<TraceRequest>& trace,
                                          const Flags& flags) {
  std::vector<StagingWay> ways = {flags.replay.staging};
  if (flags.compare) ways.assign(kAllWays.begin(), kAllWays.end());
  std::vector<NamedResult> results;
  for (const StagingWay way : ways) {
    ReplayOptions options = flags.replay;
    options.staging = way;
    if (flags.compare && options.slots == 0) options.slots = EnoughSlotsFor(way);
    Expected<NamedResult> result = RunOnce(trace, flags.device, options);
    if (!result) return ErrorOf(result);
    results.push_back(*std::move(result));
    if (!results.back().result.failure.empty()) break;
  }
  return results;
}

void Print(const std::vector<TraceRequest>& trace, const Flags& flags,
           const std::vector<NamedResult>& results) {
  const ReplayResult& first = results.front().result;
  std::string text = WithCommas(trace.size()) + " requests on " + first.machine + "\n";
  if (first.simulated_time) text += kFakeNote;
  text += NeverFitText(trace, flags.replay.scheduler, first.never_fit) + "\n";
  std::vector<ReportColumn> columns;
  for (const NamedResult& each : results) columns.push_back({each.name, &each.result});
  std::printf("%s%s", text.c_str(), ReportTable(columns).c_str());
}

// Prints the verdict and answers the exit status.
int Judge(const std::vector<NamedResult>& results) {
  for (const auto& [name, result] : results) {
    if (result.failure.empty()) continue;
    std::printf("\nWRONG (%s), found after %s steps:\n%s\n", std::string(name).c_str(),
                WithCommas(result.steps.steps).c_str(), result.failure.c_str());
    return kFound;
  }
  std::printf("\nEvery byte that the graphs read was as it should be.\n");
  return 0;
}

int Main(const std::vector<const char*>& arguments, const std::string& argv0) {
  const Expected<Flags> flags = ParseFlags(arguments);
  if (!flags) return Fail(kCannotRun, flags.error().message);
  if (flags->help) {
    std::printf("%s", HelpText().c_str());
    return 0;
  }
  const Expected<std::vector<TraceRequest>> trace = LoadTrace(*flags, argv0);
  if (!trace) return Fail(kCannotRun, trace.error().message);
  const Expected<std::vector<NamedResult>> results = RunAll(*trace, *flags);
  if (!results) {
    const bool bad_options = results.error().code == ErrorCode::kInvalidArgument;
    return Fail(bad_options ? kCannotRun : kFound, results.error().ToString());
  }
  Print(*trace, *flags, *results);
  return Judge(*results);
}

}  // namespace
}  // namespace h2d::replay

int main(int argc, char** argv) {
  return h2d::replay::Main(std::vector<const char*>(argv + std::min(argc, 1), argv + argc),
                           argc > 0 ? argv[0] : "");
}
