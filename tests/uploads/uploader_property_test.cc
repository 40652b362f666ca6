// Random uploads on the simulated device: what an upload that succeeded brought is there for every
// ordered reader, what failed without having begun changed nothing, no source and no chunk is
// touched while a copy may read it, and chunks come back; with late answers, streams that stand
// still, stops, and a device that fails in any call (I1, I3, I5, I9).
//
// A run that fails prints what replays it (tests/support/random_runs.h).
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "h2d/device/fake/fake_device.h"
#include "h2d/device/fake/host_tasks.h"
#include "h2d/device/faulty/faulty_device.h"
#include "h2d/stager/uploader.h"
#include "h2d/tests/uploads/for_each_seed.h"

namespace h2d {
namespace {

using testing::ForEachSeed;

using Bytes = std::vector<std::byte>;

constexpr uint64_t kChunk = 512;
constexpr uint64_t kMostBytes = 6 * kChunk + 100;
constexpr uint32_t kLanes = 3;

// A file of bytes that all differ from what any other place of it holds nearby.
class SourceFile {
 public:
  SourceFile() {
    for (size_t i = 0; i < bytes_.size(); ++i)
      bytes_[i] = static_cast<std::byte>((i * 2654435761U + i / 255) >> 7);
    file_ = std::tmpfile();
    EXPECT_EQ(std::fwrite(bytes_.data(), 1, bytes_.size(), file_), bytes_.size());
    EXPECT_EQ(std::fflush(file_), 0);
  }
  ~SourceFile() { std::fclose(file_); }
  int descriptor() const { return fileno(file_); }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  Bytes bytes_ = Bytes(4 * kMostBytes);
  std::FILE* file_;
};

// A stream, its destination, and what is known of that.
struct Lane {
  Stream stream;
  DevicePtr to{};
  Bytes expected = Bytes(kMostBytes);
  bool known = true;
  bool held = false;
};

// What an upload reads, drawn ahead so that tasks share no generator.
struct UploadPlan {
  uint32_t kind = 0;  // memory, mapping, file, pinned
  uint64_t at = 0;
  uint64_t bytes = 1;
  uint64_t stop_after = 0;  // bytes; 0: never
};

struct Totals {
  uint64_t done = 0;
  uint64_t incomplete = 0;
  uint64_t refused = 0;
};

class UploadRun {
 public:
  UploadRun(const SourceFile& file, uint64_t seed, bool with_holds)
      : file_(file), random_(seed), with_holds_(with_holds) {
    FakeOptions fake_options;
    fake_options.choices = std::make_shared<HashChoices>(seed);
    // An enqueue that blocks on a stream that is held would block for good, and so would every copy
    // of a confidential machine.
    if (with_holds)
      fake_options.adversaries = ChoiceSites::Live()
                                     .Without(ChoiceSite::kEnqueueBlocks)
                                     .Without(ChoiceSite::kConfidential);
    fake_ = FakeDevice::Create(fake_options);
    faulty_ = FaultyDevice::Create(fake_);
    for (uint32_t i = 0; i < kLanes; ++i) {
      lanes_.push_back(
          Lane{.stream = fake_->NewStream(std::string(1, static_cast<char>('a' + i)))});
      lanes_.back().to = fake_->AllocateDevice(kMostBytes).value();
    }
  }

  // Errors are an answer too: then nothing more is done.
  bool Create() {
    UploaderOptions options;
    options.threads = Draw(2) * 2;
    options.chunk_bytes = kChunk;
    options.min_chunk_bytes = kChunk;
    // Few chunks for many uploads, or so many that one event stands for several.
    const uint64_t many = Draw(3) == 0 ? 4 : 1;
    options.max_chunks = static_cast<uint32_t>(many * (1 + Draw(6)));
    options.max_pinned_bytes = many * kChunk * (1 + Draw(8));
    options.ring_bytes = Draw(2) * 100;
    options.piece_bytes = Draw(2) == 0 ? 100 : kChunk;
    options.wake_bytes = Draw(2) == 0 ? 1 : 1 << 20;
    options.awake_for = std::chrono::microseconds(20 * Draw(2));
    options.wait_timeout = std::chrono::milliseconds(with_holds_ ? 1 : 10'000);
    options.policy.pageable_through_pinned_below_bytes = Draw(4) == 0 ? 3 * kChunk : ~uint64_t{0};
    options.policy.flush_above_bytes = 2 * kChunk;
    auto uploader = Uploader::Create(faulty_, options);
    if (uploader) uploader_ = std::move(*uploader);
    return uploader.has_value();
  }

  FakeDevice& fake() { return *fake_; }
  FaultyDevice& faulty() { return *faulty_; }

  UploadPlan DrawPlan() {
    UploadPlan plan{.kind = Draw(4), .at = Draw(kMostBytes), .bytes = 1 + Draw(kMostBytes)};
    if (Draw(6) == 0) plan.stop_after = 1 + Draw(4 * kChunk);
    return plan;
  }

  void Step() {
    Lane& lane = lanes_[Draw(kLanes)];
    if (with_holds_ && Draw(5) == 0) return ToggleHold(lane);
    if (Draw(6) == 0) return InjectFault();
    Carry(lane, DrawPlan());
    if (Draw(2) == 0) CheckReader(lane);
  }

  void Carry(uint32_t lane, const UploadPlan& plan) { Carry(lanes_[lane], plan); }
  void CheckReader(uint32_t lane) { CheckReader(lanes_[lane]); }

  std::string Verdict() {
    faulty_->ClearFaults();
    for (Lane& lane : lanes_) {
      if (lane.held) ToggleHold(lane);
    }
    if (uploader_ != nullptr) {
      // Whatever happened, chunks are back and the next good upload works; where a record failed,
      // once its own stream has been used again.
      for (int round = 0; round < 2; ++round) {
        for (Lane& lane : lanes_) {
          Carry(lane, {.kind = 0, .bytes = kMostBytes});
          if (round == 1 && !lane.known) Fail("chunks did not come back: " + last_error_);
          CheckReader(lane);
        }
      }
      for (const UploadTicket& ticket : tickets_)
        static_cast<void>(uploader_->SourceReusable(ticket));
      uploader_.reset();
    }
    fake_->RunUntilIdle();
    if (!fake_->SynchronizeDevice()) Fail("the device did not come to rest");
    pinned_.clear();
    if (!fake_->hazards().empty()) Fail(fake_->hazards().front().ToString());
    if (!mismatch_->empty()) Fail(*mismatch_);
    return failure_;
  }
  std::string Timeline() const { return fake_->Timeline(); }
  const Totals& totals() const { return totals_; }
  uint32_t Draw(uint64_t n) { return static_cast<uint32_t>(random_() % n); }

 private:
  UploadSource SourceOf(const UploadPlan& plan) {
    const auto bytes = file_.bytes().subspan(plan.at, plan.bytes);
    if (plan.kind == 1) return UploadSource::Mapping(bytes);
    if (plan.kind == 2) return UploadSource::File(file_.descriptor(), plan.at, plan.bytes);
    if (plan.kind == 0) return UploadSource::Memory(bytes);
    PinnedBuffer pinned = fake_->AllocatePinned(plan.bytes).value();
    const auto memory = pinned.bytes();
    fake_->OnHostAccess(memory, HostAccess::kWrite);
    std::copy(bytes.begin(), bytes.end(), memory.begin());
    if (plan.at % 2 == 0)
      return UploadSource::Memory(memory).KeptAliveBy(HeldSource(std::move(pinned)));
    pinned_.push_back(std::move(pinned));
    return UploadSource::Memory(memory);
  }

  void Carry(Lane& lane, const UploadPlan& plan) {
    std::stop_source stop;
    UploadControl control;
    control.cancel = stop.get_token();
    control.progress = [&](const UploadProgress& progress) {
      if (plan.stop_after != 0 && progress.bytes_enqueued >= plan.stop_after) stop.request_stop();
    };
    const auto ticket = uploader_->Upload({.ptr = lane.to, .count = kMostBytes, .element_bytes = 1},
                                          SourceOf(plan), lane.stream, control);
    if (ticket) {
      ++totals_.done;
      tickets_.push_back(*ticket);
      const auto bytes = file_.bytes().subspan(plan.at, plan.bytes);
      std::copy(bytes.begin(), bytes.end(), lane.expected.begin());
      // An earlier failure left what it left beyond these bytes.
      lane.known = lane.known || plan.bytes == kMostBytes;
      return;
    }
    last_error_ = ticket.error().ToString();
    const bool incomplete = last_error_.find("is incomplete") != std::string::npos;
    if (!incomplete) ++totals_.refused;
    if (incomplete) ++totals_.incomplete;
    if (incomplete) lane.known = false;
  }

  // A kernel behind the upload must see what is expected.
  void CheckReader(Lane& lane) {
    if (!lane.known) return;
    KernelSpec kernel;
    kernel.name = "reader";
    kernel.reads = {{lane.to, kMostBytes}};
    kernel.run = [mismatch = mismatch_, to = lane.to,
                  expected = lane.expected](const KernelMemory& memory) {
      const auto seen = memory.Read(to, expected.size());
      const auto at = std::mismatch(seen.begin(), seen.end(), expected.begin()).first;
      if (at != seen.end())
        *mismatch = "the destination differs at byte " + std::to_string(at - seen.begin());
    };
    if (auto launched = fake_->Launch(lane.stream, std::move(kernel)); !launched)
      Fail(launched.error().ToString());
  }

  void ToggleHold(Lane& lane) {
    const auto done = lane.held ? fake_->Release(lane.stream) : fake_->Hold(lane.stream);
    if (!done) return Fail(done.error().ToString());
    lane.held = !lane.held;
  }
  void InjectFault() {
    const CallKind kind = kCallKinds[Draw(kCallKinds.size())];
    faulty_->Inject({.kind = kind,
                     .call = faulty_->CallCount(kind) + 1 + Draw(4),
                     .timing = Draw(2) == 0 ? FaultTiming::kBeforeCall : FaultTiming::kAfterCall});
  }
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
  Totals totals_;
};

TEST(UploaderProperty, WhatSucceededArrivedAndWhatDidNotBeginChangedNothing) {
  const SourceFile file;
  Totals sum;
  const uint64_t runs = ForEachSeed(250, [&](uint64_t seed) {
    UploadRun run(file, seed, /*with_holds=*/seed % 2 == 0);
    ASSERT_TRUE(run.Create());
    for (int step = 0; step < 25; ++step) run.Step();
    const std::string verdict = run.Verdict();
    ASSERT_EQ(verdict, "") << testing::HowToReplay(seed) << "\n" << run.Timeline();
    sum.done += run.totals().done;
    sum.incomplete += run.totals().incomplete;
    sum.refused += run.totals().refused;
  });
  std::printf("%d runs: %d uploads done, %d incomplete, %d refused\n", static_cast<int>(runs),
              static_cast<int>(sum.done), static_cast<int>(sum.incomplete),
              static_cast<int>(sum.refused));
  if (runs > 1) {
    EXPECT_GT(sum.done, 5 * runs);
    EXPECT_GT(sum.incomplete, runs / 4) << "hardly any was incomplete: the test tests little";
    EXPECT_GT(sum.refused, runs / 4) << "hardly any was refused: the test tests little";
  }
}

TEST(UploaderProperty, HoldsForTasksThatShareAnUploader) {
  const SourceFile file;
  ForEachSeed(100, [&](uint64_t seed) {
    UploadRun run(file, seed, /*with_holds=*/false);
    ASSERT_TRUE(run.Create());
    std::vector<std::function<void()>> tasks;
    for (uint32_t task = 0; task < kLanes; ++task) {
      std::vector<UploadPlan> plans;
      for (int i = 0; i < 4; ++i) {
        plans.push_back(run.DrawPlan());
        plans.back().kind %= 3;  // tasks share no list of pinned buffers
      }
      tasks.push_back([&run, plans, task] {
        for (const UploadPlan& plan : plans) run.Carry(task, plan);
        run.CheckReader(task);
      });
    }
    const auto ran = RunTasks(run.fake(), std::move(tasks));
    ASSERT_TRUE(ran) << ran.error().ToString();
    const std::string verdict = run.Verdict();
    ASSERT_EQ(verdict, "") << testing::HowToReplay(seed) << "\n" << run.Timeline();
  });
}

// Each call of each kind fails once, before and after it reached the device.
TEST(UploaderProperty, SurvivesAFailureOfAnyCall) {
  const SourceFile file;
  uint64_t faults = 0;
  for (const CallKind kind : kCallKinds) {
    for (const FaultTiming timing : {FaultTiming::kBeforeCall, FaultTiming::kAfterCall}) {
      for (uint64_t call = 1;; ++call) {
        UploadRun run(file, 5, /*with_holds=*/false);
        run.faulty().Inject({.kind = kind, .call = call, .timing = timing});
        if (run.Create()) {
          for (uint32_t i = 0; i < 4; ++i)
            run.Carry(i % kLanes, {.kind = i, .at = i, .bytes = kMostBytes - 9});
          run.Carry(0, {.kind = 0, .bytes = 90});
        }
        const uint64_t struck = run.faulty().FaultCount();
        const std::string verdict = run.Verdict();
        ASSERT_EQ(verdict, "") << ToString(kind) << " call " << call << "\n" << run.Timeline();
        if (struck == 0) break;
        ++faults;
      }
    }
  }
  EXPECT_GT(faults, 100U);
}

}  // namespace
}  // namespace h2d
