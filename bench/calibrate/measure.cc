#include "h2d/bench/calibrate/measure.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "h2d/bench/calibrate/sources.h"
#include "h2d/bench/calibrate/variants.h"
#include "h2d/bench/cores.h"
#include "h2d/stager/uploader.h"

namespace h2d::calibrate {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
// A ring is for small sources; beyond this it is not measured.
constexpr uint64_t kMostRingBytes = 1 * kMiB;
// Up to this size a run costs so little that more of them are made.
constexpr uint64_t kCheapBytes = 4 * kMiB;
constexpr uint32_t kMoreRuns = 5;
// Sources up to this size are read once before each run: they are as warm for one as for another.
constexpr uint64_t kWarmBytes = 16 * kMiB;
constexpr uint64_t kMostSweepBytes = 64 * kMiB;
// In loops.
constexpr uint64_t kMostLoopBytes = 256 << 10;
constexpr uint64_t kLoopCalls = 1000;
constexpr uint32_t kWarmUps = 2;  // the first allocate what the others use

// One of those that take turns.
struct Contender {
  Series series;
  uint64_t most_bytes;
  std::function<Expected<void>(uint64_t bytes)> once;
  std::unique_ptr<Uploader> uploader{};
  bool in_a_row = true;
  uint64_t calls = 1;  // of a run
  std::vector<double> seconds{};
};

class Measuring {
 public:
  Measuring(load_file::TargetDevice& target, const MeasureOptions& options, const Sources& sources,
            DevicePtr to, const std::function<void(std::string_view)>& told)
      : target_(target), options_(options), sources_(sources), to_(to), told_(told) {}

  Expected<std::vector<Series>> Run() {
    FindNearCores();
    Search();
    BySize();
    Loops();
    if (options_.sweep) Sweep();
    if (!failed_) return std::move(series_);
    return ErrorOf(failed_result_);
  }

 private:
  using Source = std::function<UploadSource(uint64_t bytes)>;

  void FindNearCores() {
    all_cores_ = bench::AllowedCores();
    if (!options_.near_cores) return;
    near_cores_ = bench::NearCores(all_cores_, [&] {
      double least = 1;
      for (int loop = 0; loop < 20; ++loop)
        least = std::min(least, SecondsOf([&] { return Copy(sources_.pinned().first(256)); }));
      return least;
    });
    told_(std::to_string(near_cores_.size()) + " of " + std::to_string(all_cores_.size()) +
          " cores are near the device");
  }

  UploaderOptions Searched(uint32_t threads, uint64_t chunk) const {
    UploaderOptions options = options_.uploader;
    options.threads = threads;
    options.chunk_bytes = chunk;
    options.min_chunk_bytes = std::min(options.min_chunk_bytes, chunk);
    options.ring_bytes = std::min(options.ring_bytes, chunk);
    options.max_pinned_bytes =
        std::max(options.max_pinned_bytes, (chunk + options.ring_bytes) * options.max_chunks);
    return options;
  }
  UploaderOptions Best() const { return Searched(best_threads_, best_chunk_); }

  void Search() {
    for (const uint32_t threads : options_.threads) {
      for (const uint64_t chunk : options_.chunk_bytes) TryPipeline(threads, chunk);
    }
  }

  void TryPipeline(uint32_t threads, uint64_t chunk) {
    told_("pageable, pipeline, " + std::to_string(threads) + " threads, chunks of " +
          std::to_string(chunk >> 10) + " KiB");
    const double before = best_seconds_;
    std::vector<Contender> one;
    AddUploader(one, "pageable, pipeline", Searched(threads, chunk), Pageable());
    TakeTurns(one, options_.most_bytes);
    if (failed_) return;
    const double seconds = one.front().series.samples.front().seconds;
    // More threads and larger chunks have to earn it.
    if (before == 0 || seconds < before * 0.97) {
      best_seconds_ = seconds;
      best_threads_ = threads;
      best_chunk_ = chunk;
    }
    series_.push_back(std::move(one.front().series));
  }

  void BySize() {
    told_("each way by size");
    std::vector<Contender> all;
    AddMemory(all, "");
    UploaderOptions pipeline = Best();
    pipeline.ring_bytes = 0;
    AddUploader(all, "pageable, pipeline", pipeline, Pageable());
    AddRing(all);
    AddDirect(all, "pageable, uploader, directly");
    AddCopy(all, "file, driver", sources_.mapped());
    AddUploader(all, "file, uploader", options_.uploader,
                [&](uint64_t n) { return UploadSource::File(sources_.descriptor(), 0, n); });
    AddCopy(all, "pageable, driver, after a pause", sources_.pageable());
    all.back().in_a_row = false;
    AddUploader(all, "pageable, uploader, after a pause", options_.uploader, Pageable());
    all.back().in_a_row = false;
    TakeTurnsBySize(all, options_.least_bytes, options_.most_bytes);
  }

  void Loops() {
    told_("small sources in loops");
    std::vector<Contender> all;
    const std::string prefix(Series::kLoops);
    AddMemory(all, prefix);
    AddDirect(all, prefix + "pageable, uploader, directly");
    for (Contender& contender : all) contender.calls = kLoopCalls;
    const uint64_t least = std::min<uint64_t>(1024, options_.least_bytes);
    TakeTurnsBySize(all, least, std::min(kMostLoopBytes, options_.most_bytes));
  }

  void Sweep() {
    for (const Variant& variant : VariantsOf(options_.uploader)) {
      told_("sweep: " + variant.name);
      std::vector<Contender> all;
      AddCopy(all, "sweep, driver", sources_.pageable());
      AddUploader(all, "sweep, " + variant.name, variant.options, Pageable());
      AddUploader(all, "sweep, " + variant.name + ", after a pause", variant.options, Pageable());
      all.back().in_a_row = false;
      TakeTurnsBySize(all, options_.least_bytes, std::min(kMostSweepBytes, options_.most_bytes));
    }
  }

  Expected<void> Copy(std::span<const std::byte> source) {
    return target_.device()->CopyAsync(to_, source, target_.stream());
  }
  Source Pinned() {
    return [&](uint64_t n) { return UploadSource::Memory(sources_.pinned().first(n)); };
  }
  Source Declared() {
    return [&](uint64_t n) { return UploadSource::Pinned(sources_.pinned().first(n)); };
  }
  Source Pageable() {
    return [&](uint64_t n) { return UploadSource::Memory(sources_.pageable().first(n)); };
  }

  // What memory costs each way, whether sent once or in loops.
  void AddMemory(std::vector<Contender>& all, const std::string& prefix) {
    AddCopy(all, prefix + "pinned, raw", sources_.pinned());
    AddRecordedCopy(all, prefix + "pinned, and record");
    AddUploader(all, prefix + "pinned, uploader", options_.uploader, Pinned());
    AddUploader(all, prefix + "pinned, uploader, declared", options_.uploader, Declared());
    AddCopy(all, prefix + "pageable, driver", sources_.pageable());
    AddUploader(all, prefix + "pageable, uploader", options_.uploader, Pageable());
  }

  void AddCopy(std::vector<Contender>& all, const std::string& way,
               std::span<const std::byte> source) {
    all.push_back({.series = {.way = way, .samples = {}},
                   .most_bytes = options_.most_bytes,
                   .once = [this, source](uint64_t n) { return Copy(source.first(n)); }});
  }

  void AddRecordedCopy(std::vector<Contender>& all, const std::string& way) {
    auto event = target_.device()->CreateEvent();
    if (!event) return Fail(ErrorOf(event));
    event_ = std::move(*event);
    all.push_back({.series = {.way = way, .samples = {}},
                   .most_bytes = options_.most_bytes,
                   .once = [this](uint64_t n) -> Expected<void> {
                     auto copied = Copy(sources_.pinned().first(n));
                     if (!copied) return copied;
                     return target_.device()->Record(*event_, target_.stream());
                   }});
  }

  void AddUploader(std::vector<Contender>& all, const std::string& way,
                   const UploaderOptions& options, const Source& source) {
    auto uploader = Uploader::Create(target_.device(), options);
    if (!uploader) return Fail(ErrorOf(uploader));
    Uploader* const raw = uploader->get();
    all.push_back({.series = {.way = way,
                              .threads = options.threads,
                              .chunk_bytes = options.chunk_bytes,
                              .samples = {}},
                   .most_bytes = options_.most_bytes,
                   .once = [this, raw, source](uint64_t n) { return Send(*raw, source(n)); },
                   .uploader = std::move(*uploader)});
    // Its threads start here, on whichever core.
    const uint64_t bytes = std::min(std::max(options.wake_bytes, kMiB), options_.most_bytes);
    if (auto sent = Send(*raw, source(bytes)); !sent) Fail(std::move(sent));
  }

  void AddRing(std::vector<Contender>& all) {
    UploaderOptions options = Best();
    options.threads = 0;
    options.chunk_bytes = std::max(options.chunk_bytes, kMostRingBytes);
    options.ring_bytes = kMostRingBytes;
    options.max_pinned_bytes =
        std::max(options.max_pinned_bytes, (options.chunk_bytes + kMostRingBytes) * 64);
    AddUploader(all, "pageable, ring", options, Pageable());
    if (!failed_) all.back().most_bytes = std::min(kMostRingBytes, options_.most_bytes);
  }

  void AddDirect(std::vector<Contender>& all, const std::string& way) {
    UploaderOptions options = options_.uploader;
    options.policy.pageable_through_pinned_from_bytes = std::numeric_limits<uint64_t>::max();
    AddUploader(all, way, options, Pageable());
    if (!failed_) all.back().most_bytes = std::min(kMostRingBytes, options_.most_bytes);
  }

  Expected<void> Send(Uploader& uploader, UploadSource source) {
    const uint64_t bytes = source.bytes();
    auto ticket = uploader.Upload({.ptr = to_, .count = bytes, .element_bytes = 1},
                                  std::move(source), target_.stream());
    if (!ticket) return ErrorOf(ticket);
    return {};
  }

  void TakeTurnsBySize(std::vector<Contender>& all, uint64_t least_bytes, uint64_t most_bytes) {
    for (uint64_t bytes = least_bytes; bytes <= most_bytes && !failed_; bytes *= 4)
      TakeTurns(all, bytes);
    for (Contender& contender : all) series_.push_back(std::move(contender.series));
  }

  // All of `all` that go that far, one run each, then the next.
  void TakeTurns(std::vector<Contender>& all, uint64_t bytes) {
    bench::KeepTo(near_cores_);
    const bool cheap = bytes <= kCheapBytes && all.front().calls == 1;
    const uint32_t runs = options_.repeats * (cheap ? kMoreRuns : 1) + kWarmUps;
    for (Contender& contender : all) contender.seconds.clear();
    for (uint32_t run = 0; run < runs && !failed_; ++run) {
      for (size_t i = 0; i < all.size() && !failed_; ++i) {
        // There and back: nobody always follows the same one.
        Contender& contender = all[run % 2 == 0 ? i : all.size() - 1 - i];
        if (bytes > contender.most_bytes) continue;
        Pause();
        if (bytes <= kWarmBytes) Touch(bytes);
        if (contender.in_a_row) static_cast<void>(SecondsOf([&] { return contender.once(bytes); }));
        const double seconds =
            SecondsOf([&] { return Run(contender, bytes); }) / static_cast<double>(contender.calls);
        if (run >= kWarmUps) contender.seconds.push_back(seconds);
      }
    }
    bench::KeepTo(all_cores_);
    if (failed_) return;
    for (Contender& contender : all) {
      std::vector<double>& seconds = contender.seconds;
      if (seconds.empty()) continue;
      std::sort(seconds.begin(), seconds.end());
      contender.series.samples.push_back({bytes, seconds[seconds.size() / 2], seconds.back()});
    }
  }

  static Expected<void> Run(const Contender& contender, uint64_t bytes) {
    Expected<void> result;
    for (uint64_t call = 0; call < contender.calls && result; ++call)
      result = contender.once(bytes);
    return result;
  }

  void Touch(uint64_t bytes) {
    constexpr size_t kLine = 64;
    for (size_t at = 0; at < bytes; at += kLine)
      touched_ = touched_ + static_cast<unsigned>(sources_.pageable()[at]);
  }

  // Awake: a thread that slept would be slow itself.
  void Pause() {
    const auto end = std::chrono::steady_clock::now() + options_.pause;
    while (std::chrono::steady_clock::now() < end) {
    }
  }

  template <class Call>
  double SecondsOf(const Call& call) {
    const auto start = target_.device()->Now();
    Expected<void> result = call();
    Expected<void> arrived = target_.Synchronize();
    const auto time = target_.device()->Now() - start;
    if (!result) Fail(std::move(result));
    if (!arrived) Fail(std::move(arrived));
    return static_cast<double>(std::max<int64_t>(time.count(), 1)) * 1e-9;
  }

  void Fail(Expected<void> result) {
    if (failed_) return;
    failed_ = true;
    failed_result_ = std::move(result);
  }

  load_file::TargetDevice& target_;
  const MeasureOptions& options_;
  const Sources& sources_;
  const DevicePtr to_;
  const std::function<void(std::string_view)>& told_;
  std::vector<int> all_cores_;
  std::vector<int> near_cores_;
  std::optional<Event> event_;
  std::vector<Series> series_;
  volatile unsigned touched_ = 0;
  double best_seconds_ = 0;
  uint32_t best_threads_ = 1;
  uint64_t best_chunk_ = kMiB;
  bool failed_ = false;
  Expected<void> failed_result_;
};

}  // namespace

Expected<std::vector<Series>> Measure(load_file::TargetDevice& target,
                                      const MeasureOptions& options,
                                      const std::function<void(std::string_view)>& told) {
  auto sources = Sources::Make(*target.device(), options.most_bytes);
  if (!sources) return ErrorOf(sources);
  auto to = target.Allocate(options.most_bytes);
  if (!to) return ErrorOf(to);
  return Measuring(target, options, **sources, *to, told).Run();
}

}  // namespace h2d::calibrate
