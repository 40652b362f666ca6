// The main job: `bazel run -c opt //examples:replay -- --help`.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "h2d/examples/replay/device_kind.h"
#include "h2d/examples/replay/flags.h"
#include "h2d/examples/replay/locate_trace.h"
#include "h2d/examples/replay/machine_factory.h"
#include "h2d/examples/replay/progress.h"
#include "h2d/examples/replay/replay.h"
#include "h2d/examples/replay/report.h"
#include "h2d/examples/replay/text_table.h"
#include "h2d/examples/replay/trace.h"

namespace h2d::replay {
namespace {

constexpr int kFound = 1;      // a mismatch, a hazard, an error of the device
constexpr int kCannotRun = 2;  // bad flags, a bad trace

constexpr char kFakeNote[] =
    "(Host times include the simulation; --device=host shows what the staging itself takes.)\n";

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

Expected<ReplayResult> RunOnce(const std::vector<TraceRequest>& trace, const Flags& flags,
                               bool mirrors) {
  Expected<std::unique_ptr<Machine>> machine = NewMachine(flags.device, flags.replay.seed);
  if (!machine) return ErrorOf(machine);
  ReplayOptions options = flags.replay;
  options.mirrors = mirrors;
  Progress progress(static_cast<uint32_t>(trace.size()));
  return Replay(trace, options, **machine, [&](uint32_t done) { progress.Show(done); });
}

// One run, and with `--compare` the same without mirrors, unless the first went wrong.
Expected<std::vector<ReplayResult>> RunAll(const std::vector<TraceRequest>& trace,
                                           const Flags& flags) {
  std::vector<ReplayResult> results;
  for (const bool mirrors : {true, false}) {
    if (!mirrors && (!flags.compare || !results[0].failure.empty())) break;
    Expected<ReplayResult> result = RunOnce(trace, flags, mirrors);
    if (!result) return ErrorOf(result);
    results.push_back(std::move(*result));
  }
  return results;
}

void Print(const std::vector<TraceRequest>& trace, const Flags& flags,
           const std::vector<ReplayResult>& results) {
  std::string text = WithCommas(trace.size()) + " requests on " + results[0].machine + "\n";
  if (flags.device == DeviceKind::kFake) text += kFakeNote;
  text += NeverFitText(trace, flags.replay.scheduler, results[0].never_fit) + "\n";
  std::vector<ReportColumn> columns = {{"with mirrors", &results[0]}};
  if (results.size() > 1) columns.push_back({"without", &results[1]});
  std::printf("%s%s", text.c_str(), ReportTable(columns).c_str());
}

// Prints the verdict and answers the exit status.
int Judge(const std::vector<ReplayResult>& results) {
  for (const ReplayResult& result : results) {
    if (result.failure.empty()) continue;
    std::printf("\nWRONG, found after %s steps:\n%s\n", WithCommas(result.steps.steps).c_str(),
                result.failure.c_str());
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
  const Expected<std::vector<ReplayResult>> results = RunAll(*trace, *flags);
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
