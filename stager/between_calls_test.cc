// What others may do while a call waits, or between its enqueueing and its record: the library
// holds no lock there, so a hook of the device can do it on the same thread.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "h2d/device/fake/fake_device.h"
#include "h2d/device/faulty/faulty_device.h"
#include "h2d/device/host/host_device.h"
#include "h2d/stager/pinned_stager.h"

namespace h2d {
namespace {

using Kind = CopyOutcome::Kind;

class BetweenCallsTest : public testing::Test {
 protected:
  void MakeStager(const StagerOptions& options) {
    stager_ = *PinnedStager::Create(device_, options);
    mirror_.emplace(*stager_->NewMirror(To(memory_.size())));
  }

  Destination To(size_t count) { return Destination::Of(memory_.data(), count); }
  std::vector<int> Values(int first) const {
    std::vector<int> values(memory_.size(), 7);
    values[0] = first;
    return values;
  }

  // Does `work` once, before the next call of `kind`.
  void BeforeNext(CallKind kind, std::function<void()> work) {
    device_->SetHook(kind, [this, kind, work = std::move(work)](uint64_t) {
      device_->SetHook(kind, nullptr);
      work();
    });
  }

  const std::shared_ptr<HostDevice> host_ = HostDevice::Create();
  const std::shared_ptr<FaultyDevice> device_ = FaultyDevice::Create(host_);
  const Stream stream_ = host_->NewStream();
  std::array<int, 1000> memory_{};
  std::unique_ptr<PinnedStager> stager_;
  std::optional<H2DMirror> mirror_;
};

// One changed value needs 4 bytes and waits; meanwhile the content is forgotten, and 4,000 bytes
// are needed. A call that kept its small slot would now wait for itself.
TEST_F(BetweenCallsTest, ACallThatNeedsMoreAfterItsWaitDoesNotWaitForItsOwnSlot) {
  MakeStager({.slot_bytes = 4096, .initial_slots = 1, .max_slots = 1});
  ASSERT_TRUE(stager_->Copy(*mirror_, Values(1), stream_));
  auto lease = *stager_->TryAcquire(4);
  BeforeNext(CallKind::kWaitAny, [&] {
    lease.reset();
    mirror_->Invalidate();
  });
  auto outcome = stager_->Copy(*mirror_, Values(2), stream_);
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->kind, Kind::kIssued);
  EXPECT_EQ(memory_[0], 2);
}

// The caller wrote 5 and says so; while that waits for a slot, somebody copies 6. What the
// destination holds is then 6 and not what the waiting call says.
TEST_F(BetweenCallsTest, ARecordThatWaitedDoesNotOverwriteWhatOthersCopiedMeanwhile) {
  MakeStager({.slot_bytes = 4096, .initial_slots = 1, .max_slots = 1});
  auto lease = *stager_->TryAcquire(4);
  const std::vector<int> own = Values(5);
  std::copy(own.begin(), own.end(), memory_.begin());
  BeforeNext(CallKind::kWaitAny, [&] {
    lease.reset();
    ASSERT_TRUE(stager_->Copy(*mirror_, Values(6), stream_));
  });
  ASSERT_TRUE(mirror_->Record(own, stream_));
  ASSERT_EQ(memory_[0], 6);
  ASSERT_TRUE(stager_->Copy(*mirror_, own, stream_));
  EXPECT_EQ(memory_[0], 5);
}

TEST_F(BetweenCallsTest, ARecordThatWaitedDoesNotOutlastAPlainCopyMadeMeanwhile) {
  MakeStager({.slot_bytes = 4096, .initial_slots = 1, .max_slots = 1});
  auto lease = *stager_->TryAcquire(4);
  const std::vector<int> own = Values(5);
  std::copy(own.begin(), own.end(), memory_.begin());
  BeforeNext(CallKind::kWaitAny, [&] {
    lease.reset();
    ASSERT_TRUE(stager_->Copy(To(1), std::vector<int>{6}, stream_));
  });
  ASSERT_TRUE(mirror_->Record(own, stream_));
  ASSERT_TRUE(stager_->Copy(*mirror_, own, stream_));
  EXPECT_EQ(memory_[0], 5);
}

// The copy has reached the destination, where anybody can see it, and the call has not returned.
TEST_F(BetweenCallsTest, APlainCopyWhoseEffectIsSeenHasBeenForgottenAlready) {
  MakeStager({.slot_bytes = 4096, .initial_slots = 2});
  ASSERT_TRUE(stager_->Copy(*mirror_, Values(1), stream_));
  BeforeNext(CallKind::kRecord, [&] {
    ASSERT_EQ(memory_[0], 6);
    ASSERT_TRUE(stager_->Copy(*mirror_, Values(1), stream_));
  });
  ASSERT_TRUE(stager_->Copy(To(1), std::vector<int>{6}, stream_));
  EXPECT_EQ(memory_[0], 1);
}

TEST_F(BetweenCallsTest, ALargeCopyFindsTheMemoryOfAllThatIsComplete) {
  MakeStager(
      {.slot_bytes = 4096, .initial_slots = 16, .max_slots = 32, .max_pinned_bytes = 1 << 16});
  const std::vector<int> large(1 << 14, 1);
  std::vector<int> destination(large.size());
  for (int i = 0; i < 16; ++i) ASSERT_TRUE(stager_->TryCopy(To(1000), Values(i), stream_));
  auto outcome =
      stager_->TryCopy(Destination::Of(destination.data(), large.size()), large, stream_);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->kind, Kind::kIssued);
}

TEST_F(BetweenCallsTest, ASizeThatFitsTheLimitOnlyBeforeRoundingIsRefusedAtOnce) {
  MakeStager({.slot_bytes = 256, .initial_slots = 1, .max_pinned_bytes = 1000});
  auto held = stager_->Acquire(256);
  ASSERT_TRUE(held);
  EXPECT_EQ(stager_->Acquire(900).error().code, ErrorCode::kResourceExhausted);
  EXPECT_EQ(stager_->TryAcquire(900).error().code, ErrorCode::kResourceExhausted);
  EXPECT_TRUE(stager_->Acquire(512));
}

TEST_F(BetweenCallsTest, NoSlotIsLargerThanTheLargest) {
  MakeStager({.slot_bytes = 256, .initial_slots = 1, .max_pinned_bytes = uint64_t{3} << 40});
  EXPECT_EQ(stager_->Acquire(StagerOptions::kMaxSlotBytes + 1).error().code,
            ErrorCode::kResourceExhausted);
}

// Sizes 1, 2, ... 32 MiB, one after another: each retires the one before, and none of them is taken
// from the driver when a retired one would do.
TEST_F(BetweenCallsTest, RetiredSlabsServeTheLargeValuesThatFollow) {
  MakeStager({.slot_bytes = 4096, .initial_slots = 1});
  for (uint64_t mib = 1; mib <= 32; ++mib) ASSERT_TRUE(stager_->Acquire(mib << 20));
  EXPECT_LE(stager_->stats().growths, 7u);
}

TEST_F(BetweenCallsTest, ACopyWhoseRecordFailedCountsAsIssuedAndAsAnError) {
  MakeStager({.slot_bytes = 4096, .initial_slots = 2});
  device_->Inject({.kind = CallKind::kRecord, .call = 1});
  ASSERT_FALSE(stager_->Copy(To(2), std::vector<int>{1, 2}, stream_));
  EXPECT_EQ(memory_[1], 2);
  const StagerStats stats = stager_->stats();
  EXPECT_EQ(stats.copies_issued, 1u);
  EXPECT_EQ(stats.errors, 1u);
  EXPECT_EQ(stats.copies_asked, 1u);
  EXPECT_EQ(stats.bytes_sent, 8u);
}

// In virtual time: the machine has no more pinned memory, and the only slot stays held.
TEST(GrowthRefusedTest, ACallThatWaitsInsteadDoesNotPollTheDriver) {
  const auto fake = FakeDevice::Create();
  const auto device = FaultyDevice::Create(fake);
  auto stager = *PinnedStager::Create(device, {.slot_bytes = 256,
                                               .initial_slots = 1,
                                               .wait_timeout = std::chrono::seconds(2),
                                               .on_growth_failure = OnGrowthFailure::kWait});
  device->Inject(OutOfMemory(device->CallCount(CallKind::kAllocatePinned) + 1));
  auto held = stager->Acquire(256);
  ASSERT_TRUE(held);
  const uint64_t allocations = device->CallCount(CallKind::kAllocatePinned);
  EXPECT_EQ(stager->Acquire(256).error().code, ErrorCode::kUnavailable);
  EXPECT_LE(device->CallCount(CallKind::kAllocatePinned) - allocations, 2u);
  EXPECT_LE(stager->stats().growth_failures, 2u);
}

}  // namespace
}  // namespace h2d
