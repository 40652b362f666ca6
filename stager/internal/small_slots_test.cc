// Which slots a small source may take, and when they come back.
#include "h2d/stager/internal/small_slots.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "h2d/device/fake/fake_device.h"
#include "h2d/device/faulty/faulty_device.h"

namespace h2d::internal {
namespace {

constexpr uint64_t kBytes = 256;

class SmallSlotsTest : public ::testing::Test {
 protected:
  void TearDown() override {
    for (const Stream& stream : {a_, b_}) static_cast<void>(fake_->Release(stream));
    slots_.reset();
    for (const Hazard& hazard : fake_->hazards()) ADD_FAILURE() << hazard.ToString();
  }

  // Copies from a slot, as an upload does; answers where the slot lies, or null without one.
  const std::byte* Send(const Stream& stream) {
    const StreamId id = fake_->Inspect(stream)->id;
    std::optional<PinnedBuffer> slot = slots_->TryTake(id, stream);
    if (!slot) return nullptr;
    const auto memory = slot->bytes();
    fake_->OnHostAccess(memory, HostAccess::kWrite);
    EXPECT_TRUE(fake_->CopyAsync(stream.id() == a_.id() ? to_ : to_ + kBytes, memory, stream));
    recorded_ = slots_->InFlight(std::move(*slot), id, stream, kBytes, true).has_value();
    return memory.data();
  }

  const std::shared_ptr<FakeDevice> fake_ = FakeDevice::Create();
  const std::shared_ptr<FaultyDevice> faulty_ = FaultyDevice::Create(fake_);
  const Stream a_ = fake_->NewStream("a");
  const Stream b_ = fake_->NewStream("b");
  const DevicePtr to_ = fake_->AllocateDevice(2 * kBytes).value();
  bool recorded_ = false;
  std::unique_ptr<SmallSlots> slots_ = std::make_unique<SmallSlots>(faulty_, kBytes, 6);
};

TEST_F(SmallSlotsTest, AStreamThatStandsStillKeepsItsPartAndNoMore) {
  ASSERT_TRUE(fake_->Hold(a_));
  for (int i = 0; i < 3; ++i) EXPECT_NE(Send(a_), nullptr);
  EXPECT_EQ(Send(a_), nullptr);
  for (int i = 0; i < 2; ++i) EXPECT_NE(Send(b_), nullptr);
  EXPECT_EQ(slots_->counts().copies, 5U);
  EXPECT_EQ(slots_->counts().pinned_bytes, 5 * kBytes);
}

// a: [held: copy, event]    the slot is written again only once its event was seen complete
TEST_F(SmallSlotsTest, ASlotComesBackWhenItWasReadAndFewAreMade) {
  ASSERT_TRUE(fake_->Hold(a_));
  const std::byte* const first = Send(a_);
  EXPECT_NE(Send(a_), first);
  ASSERT_TRUE(fake_->Release(a_));
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(fake_->SynchronizeStream(a_));
    EXPECT_NE(Send(a_), nullptr);
  }
  ASSERT_TRUE(fake_->SynchronizeStream(a_));
  EXPECT_EQ(slots_->counts().pinned_bytes, 3 * kBytes) << "no more than the stream's part";
}

TEST_F(SmallSlotsTest, ASlotWhoseRecordFailedComesBackWithTheNextOneOnItsStream) {
  slots_ = std::make_unique<SmallSlots>(faulty_, kBytes, 2);
  ASSERT_TRUE(fake_->Hold(a_));
  faulty_->Inject({.kind = CallKind::kRecord, .call = 1});
  const std::byte* const first = Send(a_);
  EXPECT_FALSE(recorded_);
  EXPECT_EQ(Send(a_), nullptr) << "it records behind the copy";
  EXPECT_NE(Send(b_), first) << "it may still be read";
  ASSERT_TRUE(fake_->Release(a_));
  ASSERT_TRUE(fake_->SynchronizeDevice());
  EXPECT_NE(Send(a_), nullptr);
  EXPECT_EQ(slots_->counts().in_use, 1U) << "what failed came back";
}

// Nobody said that the stream would be there for the end.
TEST_F(SmallSlotsTest, TheEndUsesNoStreamWhoseRecordFailed) {
  faulty_->Inject({.kind = CallKind::kRecord, .call = 1});
  EXPECT_NE(Send(a_), nullptr);
  EXPECT_NE(Send(b_), nullptr);
  ASSERT_TRUE(fake_->SynchronizeDevice());
  ASSERT_TRUE(fake_->DestroyStream(a_));
  const FakeCounters before = fake_->counters();
  slots_.reset();
  EXPECT_EQ(fake_->counters().pinned_releases, before.pinned_releases + 1) << "the other is leaked";
}

TEST_F(SmallSlotsTest, WithoutMemoryThereIsNoSlotAndNothingIsCounted) {
  faulty_->Inject({.kind = CallKind::kAllocatePinned, .call = 1});
  EXPECT_EQ(Send(a_), nullptr);
  EXPECT_EQ(slots_->counts().in_use, 0U);
  EXPECT_EQ(slots_->counts().pinned_bytes, 0U);
  EXPECT_NE(Send(a_), nullptr);
}

// All of a stream's share may be slots whose records failed: the next source finds none, and its
// call records behind them.
TEST_F(SmallSlotsTest, AShareOfFailedRecordsComesBackWithTheNextSourceOnItsStream) {
  faulty_->Inject({.kind = CallKind::kRecord, .span = FaultSpan::kForEver});
  for (int i = 0; i < 3; ++i) {
    EXPECT_NE(Send(a_), nullptr);
    EXPECT_FALSE(recorded_);
  }
  EXPECT_EQ(Send(a_), nullptr);
  faulty_->ClearFaults();
  EXPECT_EQ(Send(a_), nullptr);
  ASSERT_TRUE(fake_->SynchronizeStream(a_));
  EXPECT_NE(Send(a_), nullptr);
  EXPECT_TRUE(recorded_);
}

}  // namespace
}  // namespace h2d::internal
