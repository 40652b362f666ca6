// What a live graph feels of 100 small copies a millisecond: by the stager, by raw copies, and by
// the ways that use the multiprocessors. All in one run, in turn, and compared by ratios.
//
// A graph of small kernels has more than one speed, up to a tenth apart (on an H200). It keeps one
// until kernels of somebody else run beside it, which draw it anew: so beside H2D copies it repeats
// to a few ten-thousandths, while fill kernels, copies within the device and all that follows them
// in a round are means over many draws. Shown are the mean, the 10th, the 50th and the 90th of a
// hundred replays; ratios of means and of medians to nothing in the same round, with the standard
// error over the rounds; and nothing once more, which shows what the measurement cannot tell apart.
//
//   bench/gpu/run live_graph
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "h2d/bench/live_graph/cuda_check.h"
#include "h2d/bench/live_graph/graphs.h"
#include "h2d/bench/live_graph/loads.h"
#include "h2d/bench/live_graph/nvrtc.h"
#include "h2d/device/cuda/cuda_device.h"

namespace h2d::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kRounds = 40;
constexpr auto kInterval = std::chrono::microseconds(10);   // between two operations of a load
constexpr auto kRoundTime = std::chrono::milliseconds(60);  // of replays

double Quantile(std::vector<double> values, double q) {
  const auto at = static_cast<std::ptrdiff_t>(q * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<size_t>(at)];
}

double Median(const std::vector<double>& values) { return Quantile(values, 0.5); }

double Mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Of the mean of `values`.
double StandardError(const std::vector<double>& values) {
  const double mean = Mean(values);
  double squares = 0;
  for (double value : values) squares += (value - mean) * (value - mean);
  const auto count = static_cast<double>(values.size());
  return std::sqrt(squares / (count - 1) / count);
}

// Issues a load's operations at their pace on a thread of its own, for as long as it lives.
class Pacer {
 public:
  explicit Pacer(const Load& load) {
    if (load.issue == nullptr) return;
    thread_ = std::thread([this, &load] { Run(load); });
    while (issued_.load() == 0) std::this_thread::yield();
  }
  ~Pacer() { Stop(); }
  Pacer(const Pacer&) = delete;
  Pacer& operator=(const Pacer&) = delete;

  void Stop() {
    stop_.store(true);
    if (thread_.joinable()) thread_.join();
  }
  // After `Stop`.
  double PerMillisecond() const { return seconds_ == 0 ? 0 : double(issued_) / seconds_ / 1000; }
  double HostNs() const { return issued_ == 0 ? 0 : busy_seconds_ * 1e9 / double(issued_); }

 private:
  void Run(const Load& load) {
    // As an engine's thread has it: a thread without a current device costs the library a step
    // more.
    Check(cudaSetDevice(0), "Choosing the device");
    const Clock::time_point start = Clock::now();
    Clock::time_point due = start;
    uint64_t n = 0;
    while (!stop_.load(std::memory_order_relaxed)) {
      while (Clock::now() < due) {
      }
      const Clock::time_point before = Clock::now();
      load.issue(n++);
      busy_seconds_ += std::chrono::duration<double>(Clock::now() - before).count();
      issued_.store(n, std::memory_order_relaxed);
      due = std::max(due + kInterval, Clock::now() - 10 * kInterval);
    }
    seconds_ = std::chrono::duration<double>(Clock::now() - start).count();
  }

  std::atomic<bool> stop_ = false;
  std::atomic<uint64_t> issued_ = 0;
  double seconds_ = 0;
  double busy_seconds_ = 0;
  std::thread thread_;
};

// Replays graphs back to back and times each on the device.
class Replayer {
 public:
  explicit Replayer(cudaStream_t stream) : stream_(stream) {
    for (cudaEvent_t& mark : marks_) Check(cudaEventCreate(&mark), "Creating an event");
  }

  // The times of single replays, in microseconds, over about `kRoundTime`.
  std::vector<double> Us(const LiveGraph& graph) {
    std::vector<double> times;
    const Clock::time_point end = Clock::now() + kRoundTime;
    while (Clock::now() < end) {
      // A few launches ahead, so that the device never waits for the host.
      for (size_t i = 0; i < kAhead; ++i) {
        Check(cudaEventRecord(marks_[i], stream_), "Recording a mark");
        Check(cudaGraphLaunch(graph.executable, stream_), "Launching a graph");
      }
      Check(cudaEventRecord(marks_[kAhead], stream_), "Recording a mark");
      Check(cudaEventSynchronize(marks_[kAhead]), "Waiting for replays");
      // The first of a burst starts on an idle device.
      for (size_t i = 1; i < kAhead; ++i) {
        float milliseconds = 0;
        Check(cudaEventElapsedTime(&milliseconds, marks_[i], marks_[i + 1]), "Timing a replay");
        times.push_back(milliseconds * 1e3);
      }
    }
    return times;
  }

 private:
  static constexpr size_t kAhead = 8;

  cudaStream_t stream_;
  std::array<cudaEvent_t, kAhead + 1> marks_ = {};
};

// A load's figures beside one graph: all replays, and a value for each round.
struct Figures {
  std::vector<double> us;
  std::vector<double> means, medians;  // ratios to nothing of the same round
  std::vector<double> per_ms, host_ns;
};

void PrintFigures(const LiveGraph& graph, const Load& load, const Figures& figures) {
  const double mean = Mean(figures.means);
  const double median = Mean(figures.medians);
  std::printf("%-13s %-19s %8.1f %8.1f %8.1f %8.1f  x%.4f +-%.4f  x%.4f +-%.4f  %5.1f  %6.0f%s\n",
              graph.name.c_str(), load.name.c_str(), Mean(figures.us), Quantile(figures.us, 0.1),
              Median(figures.us), Quantile(figures.us, 0.9), mean, StandardError(figures.means),
              median, StandardError(figures.medians), Median(figures.per_ms),
              Median(figures.host_ns),
              load.target == 0                        ? ""
              : std::max(mean, median) <= load.target ? "  target met"
                                                      : "  TARGET MISSED");
}

// `stager` may exceed `raw` by half a thousandth.
void PrintAgainstRaw(const LiveGraph& graph, const Figures& stager, const Figures& raw) {
  std::vector<double> by_mean, by_median;
  for (size_t round = 0; round < kRounds; ++round) {
    by_mean.push_back(stager.means[round] - raw.means[round]);
    by_median.push_back(stager.medians[round] - raw.medians[round]);
  }
  std::printf("%-13s stager 64 KiB - raw 64 KiB: mean %+.4f +-%.4f, median %+.4f +-%.4f  %s\n",
              graph.name.c_str(), Mean(by_mean), StandardError(by_mean), Mean(by_median),
              StandardError(by_median),
              std::max(Mean(by_mean), Mean(by_median)) <= 0.0005 ? "target met" : "TARGET MISSED");
}

void Measure(const LiveGraph& graph, const std::vector<Load>& loads, Replayer& replayer) {
  std::vector<Figures> figures(loads.size());
  static_cast<void>(replayer.Us(graph));  // warms up
  for (size_t round = 0; round < kRounds; ++round) {
    double nothing_mean = 0, nothing_median = 0;
    for (size_t i = 0; i < loads.size(); ++i) {
      Pacer pacer(loads[i]);
      const std::vector<double> us = replayer.Us(graph);
      pacer.Stop();
      Check(cudaDeviceSynchronize(), "Waiting for the device");
      if (i == 0) {
        nothing_mean = Mean(us);
        nothing_median = Median(us);
      }
      figures[i].us.insert(figures[i].us.end(), us.begin(), us.end());
      figures[i].means.push_back(Mean(us) / nothing_mean);
      figures[i].medians.push_back(Median(us) / nothing_median);
      figures[i].per_ms.push_back(pacer.PerMillisecond());
      figures[i].host_ns.push_back(pacer.HostNs());
    }
  }
  for (size_t i = 0; i < loads.size(); ++i) PrintFigures(graph, loads[i], figures[i]);
  PrintAgainstRaw(graph, figures[3], figures[4]);
  std::fflush(stdout);
}

int Main() {
  const auto device = CudaDevice::Create(0);
  if (!device) {
    std::printf("live_graph: SKIPPED. %s\n", device.error().message.c_str());
    return 0;
  }
  cudaStream_t stream = nullptr;
  Check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "Creating a stream");
  const Kernels kernels(kKernelSource);
  const std::vector<LiveGraph> graphs = CaptureGraphs(kernels, stream);
  const std::vector<Load> loads = MakeLoads(*device, kernels);
  Replayer replayer(stream);
  std::printf(
      "microseconds of a replay, and ratios to nothing of the same round, over %zu rounds\n"
      "%-33s %8s %8s %8s %8s  %-16s  %-16s  %5s  %6s\n",
      kRounds, "", "mean", "p10", "median", "p90", "mean", "median", "op/ms", "ns/op");
  for (const LiveGraph& graph : graphs) Measure(graph, loads, replayer);
  return 0;
}

}  // namespace
}  // namespace h2d::bench

int main() { return h2d::bench::Main(); }
