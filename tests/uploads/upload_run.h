// One run of uploads on a simulated device whose calls may fail, and what must hold of it: what an
// upload that succeeded brought is there for every ordered reader, what failed without having begun
// changed nothing, no source and no chunk is touched while a copy may read it, chunks come back,
// and no pinned memory is kept (I1, I3, I5, I9).
#ifndef H2D_TESTS_UPLOADS_UPLOAD_RUN_H_
#define H2D_TESTS_UPLOADS_UPLOAD_RUN_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "h2d/device/fake/fake_device.h"
#include "h2d/device/faulty/faulty_device.h"
#include "h2d/stager/uploader.h"

namespace h2d::testing {

// A file of bytes that all differ from what any other place of it holds nearby.
class SourceFile {
 public:
  SourceFile();
  ~SourceFile() { std::fclose(file_); }
  SourceFile(const SourceFile&) = delete;
  SourceFile& operator=(const SourceFile&) = delete;

  int descriptor() const { return fileno(file_); }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
  std::FILE* file_;
};

// What an upload reads, drawn ahead so that tasks share no generator.
struct UploadPlan {
  enum Kind : uint32_t { kMemory, kMapping, kFile, kPinned };

  uint32_t kind = kMemory;
  uint64_t at = 0;     // in the file; a pinned source at an even place is kept alive by the upload
  uint64_t bytes = 1;  // of a file it may reach beyond its end
  uint64_t stop_after = 0;  // bytes; 0: never
};

struct UploadTotals {
  uint64_t done = 0;
  uint64_t incomplete = 0;
  uint64_t refused = 0;
};

class UploadRun {
 public:
  static constexpr uint64_t kChunk = 512;
  static constexpr uint64_t kMostBytes = 6 * kChunk + 100;
  static constexpr uint32_t kLanes = 3;  // a stream and a destination each

  // All that the run does follows from `seed`; with 0 the device is kind. Streams stand still only
  // in runs with holds. The trace, for `Timeline`, costs time.
  UploadRun(const SourceFile& file, uint64_t seed, bool with_holds, bool keep_trace = true);

  // With options that are drawn, or with these. Errors are an answer too: then nothing more is
  // done.
  bool Create() { return Create(DrawOptions()); }
  bool Create(const UploaderOptions& options);
  UploaderOptions DrawOptions();
  // Chunks of `kChunk`, no threads.
  static UploaderOptions SmallChunks();

  FakeDevice& fake() { return *fake_; }
  FaultyDevice& faulty() { return *faulty_; }

  UploadPlan DrawPlan();
  void Step();
  void Carry(uint32_t lane, const UploadPlan& plan) { Carry(lanes_[lane], plan); }
  void CheckReader(uint32_t lane) { CheckReader(lanes_[lane]); }
  void ToggleHold(uint32_t lane) { ToggleHold(lanes_[lane]); }
  void AskForSources();

  // Ends the run; empty when all was as it should be.
  std::string Verdict();
  std::string Timeline() const { return fake_->Timeline(); }
  const UploadTotals& totals() const { return totals_; }
  uint32_t Draw(uint64_t n) { return static_cast<uint32_t>(random_() % n); }

 private:
  using Bytes = std::vector<std::byte>;

  // A stream, its destination, and what is known of that.
  struct Lane {
    Stream stream;
    DevicePtr to{};
    Bytes expected = Bytes(kMostBytes);
    bool known = true;
    bool held = false;
  };

  UploadSource SourceOf(const UploadPlan& plan);
  void Carry(Lane& lane, const UploadPlan& plan);
  void CheckReader(Lane& lane);
  void ToggleHold(Lane& lane);
  void InjectFault();
  void UploadEverywhere();
  void Fail(std::string what) {
    if (failure_.empty()) failure_ = std::move(what);
  }

  const SourceFile& file_;
  std::mt19937_64 random_;
  const bool with_holds_;
  std::shared_ptr<FakeDevice> fake_;
  std::shared_ptr<FaultyDevice> faulty_;
  std::vector<Lane> lanes_;
  std::unique_ptr<Uploader> uploader_;
  std::vector<UploadTicket> tickets_;
  std::vector<PinnedBuffer> pinned_;
  const std::shared_ptr<std::string> mismatch_ = std::make_shared<std::string>();
  std::string last_error_;
  std::string failure_;
  UploadTotals totals_;
};

}  // namespace h2d::testing

#endif  // H2D_TESTS_UPLOADS_UPLOAD_RUN_H_
