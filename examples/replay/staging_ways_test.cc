// The ways to stage a step, beside one another: what is in device memory, what travelled, in how
// many calls.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "h2d/device/faulty/faulty_device.h"
#include "h2d/examples/replay/host_machine.h"
#include "h2d/examples/replay/packed_staging.h"
#include "h2d/examples/replay/replay.h"
#include "h2d/examples/replay/small_run.h"
#include "h2d/examples/replay/step_shape.h"
#include "h2d/examples/replay/step_slabs.h"

namespace h2d::replay {
namespace {

uint64_t CopyCalls(const FaultyDevice& device) {
  return device.CallCount(CallKind::kCopyAsync) + device.CallCount(CallKind::kCopyBatchAsync);
}

// Host memory, where a graph finds all copies carried out. At each launch it notes what all of the
// device memory holds and how many copy calls there were so far.
class WatchedMachine final : public Machine {
 public:
  using Bytes = std::vector<std::byte>;

  std::string_view name() const override { return host_->name(); }
  const std::shared_ptr<Device>& device() override { return device_; }

  Expected<DevicePtr> AllocateDevice(uint64_t bytes, std::string_view name) override {
    Expected<DevicePtr> ptr = host_->AllocateDevice(bytes, name);
    if (ptr) memory_.emplace_back(static_cast<std::byte*>(ptr->pointer()), bytes);
    return ptr;
  }
  Expected<std::span<std::byte>> AllocateSnapshot(uint64_t bytes) override {
    return host_->AllocateSnapshot(bytes);
  }
  Expected<Stream> NewStream(std::string_view name) override { return host_->NewStream(name); }

  Expected<void> LaunchGraph(const Stream& stream, const StepGraph& graph,
                             std::span<std::byte> snapshot,
                             std::chrono::nanoseconds duration) override {
    Bytes& contents = contents_.emplace_back();
    for (const auto memory : memory_) {
      contents.insert(contents.end(), memory.begin(), memory.end());
    }
    copy_calls_.push_back(CopyCalls(*counted_));
    return host_->LaunchGraph(stream, graph, snapshot, duration);
  }

  const std::vector<Bytes>& contents() const { return contents_; }
  const std::vector<uint64_t>& copy_calls() const { return copy_calls_; }

 private:
  std::unique_ptr<Machine> host_ = NewHostMachine();
  std::shared_ptr<FaultyDevice> counted_ = FaultyDevice::Create(host_->device());
  std::shared_ptr<Device> device_ = counted_;
  std::vector<std::span<const std::byte>> memory_;
  std::vector<Bytes> contents_;
  std::vector<uint64_t> copy_calls_;
};

// A run that is right; `machine` has watched it.
ReplayResult Watched(WatchedMachine& machine, StagingWay way, uint64_t cover_gap_bytes = 8192) {
  ReplayOptions options = SmallOptions();
  options.staging = way;
  options.writer.cover_gap_bytes = cover_gap_bytes;
  Expected<ReplayResult> result = Replay(SmallTrace(), options, machine, [](uint32_t) {});
  EXPECT_TRUE(result) << result.error().ToString();
  EXPECT_EQ(result->failure, "");
  EXPECT_GT(result->steps.steps, 100U);
  return *std::move(result);
}

TEST(StagingWaysTest, DeviceMemoryHoldsTheSameBytesAtEveryStep) {
  WatchedMachine separate;
  Watched(separate, StagingWay::kSeparate);
  for (const StagingWay way :
       {StagingWay::kSeparateMirrored, StagingWay::kPacked, StagingWay::kPackedMirrored}) {
    SCOPED_TRACE(ToString(way));
    WatchedMachine machine;
    Watched(machine, way);
    ASSERT_EQ(machine.contents().size(), separate.contents().size());
    for (size_t step = 0; step < machine.contents().size(); ++step) {
      ASSERT_EQ(machine.contents()[step], separate.contents()[step]) << "step " << step;
    }
  }
}

TEST(StagingWaysTest, APackedStepIsOneCopyCall) {
  for (const StagingWay way : {StagingWay::kPacked, StagingWay::kPackedMirrored}) {
    SCOPED_TRACE(ToString(way));
    WatchedMachine machine;
    const ReplayResult result = Watched(machine, way);
    for (size_t step = 0; step < machine.copy_calls().size(); ++step) {
      ASSERT_EQ(machine.copy_calls()[step], step + 1);  // token positions change in every step
    }
    EXPECT_EQ(result.steps.most_copies, 1U);
  }
  WatchedMachine separate;
  EXPECT_EQ(Watched(separate, StagingWay::kSeparate).steps.most_copies, kTensorKinds);
  EXPECT_EQ(separate.copy_calls().back(), kTensorKinds * separate.copy_calls().size());
}

// Within a tensor a mirror sends all from the first difference to the last. A writer sends the rows
// that differ and at most what lies between; and between two of the eight tensors at most
// `cover_gap_bytes` that are equal.
TEST(StagingWaysTest, APackedStepSendsWhatMirrorsSendAndAtMostTheGapsThatItCovers) {
  WatchedMachine separate;
  const ReplayResult mirrored = Watched(separate, StagingWay::kSeparateMirrored);
  uint64_t sent_before = 0;
  for (const uint64_t gap : {0, 16, 64, 8192}) {
    SCOPED_TRACE("gaps of " + std::to_string(gap));
    WatchedMachine machine;
    const ReplayResult packed = Watched(machine, StagingWay::kPackedMirrored, gap);
    for (size_t step = 0; step < packed.steps.bytes_sent.size(); ++step) {
      ASSERT_LE(packed.steps.bytes_sent[step],
                mirrored.steps.bytes_sent[step] + (kTensorKinds - 1) * gap)
          << "step " << step;
    }
    EXPECT_GT(packed.stager.bytes_sent, sent_before);
    sent_before = packed.stager.bytes_sent;
  }
}

// Without mirrors all that is asked for travels, and the few bytes between fields.
TEST(StagingWaysTest, WithoutMirrorsEverythingTravelsInEveryStep) {
  WatchedMachine separate;
  const ReplayResult each = Watched(separate, StagingWay::kSeparate);
  EXPECT_EQ(each.stager.bytes_sent, each.stager.bytes_asked);
  EXPECT_EQ(each.stager.copies_issued, each.stager.copies_asked);
  WatchedMachine machine;
  const ReplayResult packed = Watched(machine, StagingWay::kPacked);
  EXPECT_EQ(packed.stager.bytes_asked, each.stager.bytes_asked);
  EXPECT_GE(packed.stager.bytes_sent, packed.stager.bytes_asked);
  EXPECT_LE(packed.stager.bytes_sent,
            packed.stager.bytes_asked + packed.steps.steps * (kTensorKinds - 1) * 16);
}

// One request that prefills two tokens.
class PackedStagingTest : public testing::Test {
 protected:
  PackedStagingTest() {
    shape_.max_batch = 4;
    shape_.table_width = 3;
    shape_.token_sizes = {4, 8};
    const RowPlan row{.request = 1, .computed = 0, .scheduled = 2, .blocks = blocks_};
    StepPlan plan;
    plan.rows = {&row, 1};
    plan.tokens = 2;
    tensors_.Fill(plan);
  }

  StepSlabs TwoSlabs() { return StepSlabs::Allocate(*machine_, shape_, 2).value(); }
  // Answers how many copy calls it took.
  uint64_t Stage(StepStaging& staging, uint32_t slab) {
    const uint64_t before = CopyCalls(*device_);
    const Expected<void> staged = staging.Stage(StepInputs{slab, 0, tensors_, stream_, stream_});
    EXPECT_TRUE(staged) << staged.error().ToString();
    return CopyCalls(*device_) - before;
  }

  const std::vector<int32_t> blocks_ = {5};
  StepShape shape_;
  StepTensors tensors_{/*block_size=*/2, /*table_width=*/3, /*seed=*/1};
  std::unique_ptr<Machine> machine_ = NewHostMachine();
  std::shared_ptr<FaultyDevice> device_ = FaultyDevice::Create(machine_->device());
  const Stream stream_ = machine_->NewStream("plan").value();
};

TEST_F(PackedStagingTest, AStepThatBringsNothingNewToItsSlabMakesNoCopy) {
  const StepSlabs slabs = TwoSlabs();
  const auto staging = NewPackedMirroredStaging(device_, slabs, {}, {}).value();
  EXPECT_EQ(Stage(*staging, 0), 1U);
  EXPECT_EQ(Stage(*staging, 0), 0U);
  EXPECT_EQ(Stage(*staging, 1), 1U) << "the other slab was known before it was sent";
  EXPECT_EQ(Stage(*staging, 0), 0U);
  EXPECT_EQ(Stage(*staging, 1), 0U);
  EXPECT_EQ(staging->stats().copies_skipped, 3U);
}

TEST_F(PackedStagingTest, WithoutAMirrorItIsSentAgain) {
  const StepSlabs slabs = TwoSlabs();
  const auto staging = NewPackedStaging(device_, slabs, {}, {}).value();
  EXPECT_EQ(Stage(*staging, 0), 1U);
  EXPECT_EQ(Stage(*staging, 0), 1U);
  EXPECT_EQ(staging->stats().copies_issued, 2U);
}

}  // namespace
}  // namespace h2d::replay
