#include "h2d/bench/calibrate/measure.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "h2d/stager/uploader.h"

namespace h2d::calibrate {
namespace {

// A ring is for small sources; beyond this it is not measured.
constexpr uint64_t kMostRingBytes = uint64_t{4} << 20;

// The memory and the file that everything is read from, all of one content.
class Sources {
 public:
  static Expected<std::unique_ptr<Sources>> Make(Device& device, uint64_t bytes) {
    auto pinned = device.AllocatePinned(bytes);
    if (!pinned) return ErrorOf(pinned);
    auto sources = std::unique_ptr<Sources>(new Sources(std::move(*pinned), bytes));
    if (!sources->MakeFile()) return FailedPrecondition("No temporary file could be made.");
    return sources;
  }
  ~Sources() {
    if (mapped_ != MAP_FAILED) munmap(mapped_, pageable_.size());
    if (file_ != nullptr) std::fclose(file_);
  }

  std::span<const std::byte> pageable() const { return pageable_; }
  std::span<const std::byte> pinned() const { return pinned_.bytes().first(pageable_.size()); }
  std::span<const std::byte> mapped() const {
    return {static_cast<const std::byte*>(mapped_), pageable_.size()};
  }
  int descriptor() const { return fileno(file_); }

 private:
  Sources(PinnedBuffer pinned, uint64_t bytes) : pageable_(bytes), pinned_(std::move(pinned)) {
    for (size_t i = 0; i < pageable_.size(); ++i) pageable_[i] = static_cast<std::byte>(i * 7);
    std::copy(pageable_.begin(), pageable_.end(), pinned_.bytes().begin());
  }
  bool MakeFile() {
    file_ = std::tmpfile();
    if (file_ == nullptr) return false;
    if (std::fwrite(pageable_.data(), 1, pageable_.size(), file_) != pageable_.size()) return false;
    if (std::fflush(file_) != 0) return false;
    mapped_ = mmap(nullptr, pageable_.size(), PROT_READ, MAP_PRIVATE, fileno(file_), 0);
    return mapped_ != MAP_FAILED;
  }

  std::vector<std::byte> pageable_;
  PinnedBuffer pinned_;
  std::FILE* file_ = nullptr;
  void* mapped_ = MAP_FAILED;
};

class Measuring {
 public:
  Measuring(load_file::TargetDevice& target, const MeasureOptions& options, const Sources& sources,
            DevicePtr to, const std::function<void(std::string_view)>& told)
      : target_(target), options_(options), sources_(sources), to_(to), told_(told) {}

  Expected<std::vector<Series>> Run() {
    Raw("pinned, raw", sources_.pinned());
    Raw("pageable, driver", sources_.pageable());
    Raw("file, driver", sources_.mapped());
    for (const uint32_t threads : options_.threads) {
      for (const uint64_t chunk : options_.chunk_bytes) TryPipeline(threads, chunk);
    }
    Uploads("pinned, uploader", Pipeline(),
            [&](uint64_t bytes) { return UploadSource::Memory(sources_.pinned().first(bytes)); });
    Uploads("pageable, pipeline", Pipeline(),
            [&](uint64_t bytes) { return UploadSource::Memory(sources_.pageable().first(bytes)); });
    Uploads("file, pipeline", Pipeline(),
            [&](uint64_t bytes) { return UploadSource::File(sources_.descriptor(), 0, bytes); });
    Ring();
    if (!failed_) return std::move(series_);
    return ErrorOf(failed_result_);
  }

 private:
  using Once = std::function<Expected<void>(uint64_t bytes)>;

  // The pipeline of the best number of threads and size of chunk.
  UploaderOptions Pipeline() const { return PipelineOf(best_threads_, best_chunk_); }
  static UploaderOptions PipelineOf(uint32_t threads, uint64_t chunk) {
    UploaderOptions options;
    options.threads = threads;
    options.chunk_bytes = chunk;
    options.min_chunk_bytes = std::min(options.min_chunk_bytes, chunk);
    options.ring_bytes = 0;
    options.max_pinned_bytes = std::max(options.max_pinned_bytes, chunk * options.max_chunks);
    return options;
  }

  void Raw(const std::string& way, std::span<const std::byte> source) {
    Sweep({.way = way, .samples = {}}, options_.most_bytes, [&](uint64_t bytes) {
      return target_.device()->CopyAsync(to_, source.first(bytes), target_.stream());
    });
  }

  void TryPipeline(uint32_t threads, uint64_t chunk) {
    Series series{
        .way = "pageable, pipeline", .threads = threads, .chunk_bytes = chunk, .samples = {}};
    const double before = best_seconds_;
    WithUploader(PipelineOf(threads, chunk), [&](Uploader& uploader) {
      told_(series.way + ", " + std::to_string(threads) + " threads, chunks of " +
            std::to_string(chunk >> 10) + " KiB");
      AddSample(series, options_.most_bytes, [&](uint64_t bytes) {
        return Send(uploader, UploadSource::Memory(sources_.pageable().first(bytes)));
      });
    });
    if (series.samples.empty()) return;
    const double seconds = series.samples.front().seconds;
    // More threads and larger chunks have to earn it.
    if (before == 0 || seconds < before * 0.97) {
      best_seconds_ = seconds;
      best_threads_ = threads;
      best_chunk_ = chunk;
    }
    series_.push_back(std::move(series));
  }

  void Uploads(const std::string& way, const UploaderOptions& options,
               const std::function<UploadSource(uint64_t bytes)>& source) {
    WithUploader(options, [&](Uploader& uploader) {
      Sweep({.way = way,
             .threads = options.threads,
             .chunk_bytes = options.chunk_bytes,
             .samples = {}},
            options_.most_bytes, [&](uint64_t bytes) { return Send(uploader, source(bytes)); });
    });
  }

  void Ring() {
    UploaderOptions options = Pipeline();
    options.chunk_bytes = options.ring_bytes = kMostRingBytes;
    options.threads = 0;
    options.max_pinned_bytes = std::max(options.max_pinned_bytes, 4 * kMostRingBytes);
    WithUploader(options, [&](Uploader& uploader) {
      Sweep({.way = "pageable, ring", .samples = {}}, std::min(options_.most_bytes, kMostRingBytes),
            [&](uint64_t bytes) {
              return Send(uploader, UploadSource::Memory(sources_.pageable().first(bytes)));
            });
    });
  }

  Expected<void> Send(Uploader& uploader, UploadSource source) {
    const uint64_t bytes = source.bytes();
    auto ticket = uploader.Upload({.ptr = to_, .count = bytes, .element_bytes = 1},
                                  std::move(source), target_.stream());
    if (!ticket) return ErrorOf(ticket);
    return {};
  }

  template <class Use>
  void WithUploader(const UploaderOptions& options, const Use& use) {
    auto uploader = Uploader::Create(target_.device(), options);
    if (!uploader) return Fail(ErrorOf(uploader));
    use(**uploader);
  }

  void Sweep(Series series, uint64_t most_bytes, const Once& once) {
    told_(series.way);
    for (uint64_t bytes = options_.least_bytes; bytes <= most_bytes; bytes *= 4)
      AddSample(series, bytes, once);
    series_.push_back(std::move(series));
  }

  void AddSample(Series& series, uint64_t bytes, const Once& once) {
    std::vector<double> seconds;
    for (uint32_t i = 0; i < options_.repeats + kWarmUps && !failed_; ++i) {
      const auto start = target_.device()->Now();
      Expected<void> result = once(bytes);
      Expected<void> arrived = target_.Synchronize();
      if (!result) return Fail(std::move(result));
      if (!arrived) return Fail(std::move(arrived));
      const auto time = target_.device()->Now() - start;
      if (i >= kWarmUps)
        seconds.push_back(static_cast<double>(std::max<int64_t>(time.count(), 1)) * 1e-9);
    }
    if (failed_) return;
    std::sort(seconds.begin(), seconds.end());
    series.samples.push_back({bytes, seconds[seconds.size() / 2], seconds.back()});
  }

  void Fail(Expected<void> result) {
    if (failed_) return;
    failed_ = true;
    failed_result_ = std::move(result);
  }

  static constexpr uint32_t kWarmUps = 2;  // the first allocate what the others use

  load_file::TargetDevice& target_;
  const MeasureOptions& options_;
  const Sources& sources_;
  const DevicePtr to_;
  const std::function<void(std::string_view)>& told_;
  std::vector<Series> series_;
  double best_seconds_ = 0;
  uint32_t best_threads_ = 1;
  uint64_t best_chunk_ = uint64_t{1} << 20;
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
