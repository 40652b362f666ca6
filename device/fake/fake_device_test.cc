// The simulated device as a device: copies, memory and time.
#include "h2d/device/fake/fake_device.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <vector>

#include "h2d/device/fake/testing/fake_fixture.h"

namespace h2d {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;
using testing::BytesOf;

class FakeDeviceTest : public testing::FakeFixture {};

TEST_F(FakeDeviceTest, ACopyArrivesWhenItsLatencyHasPassedAndNotBefore) {
  Fill(slot_, 7);
  ASSERT_TRUE(Copy(a_, target_, slot_));
  device_->AdvanceTime(microseconds(6));
  EXPECT_EQ(At(target_), BytesOf(0, kBytes));
  device_->AdvanceTime(microseconds(1));
  EXPECT_EQ(At(target_), BytesOf(7, kBytes));
  EXPECT_EQ(At(target_ + kBytes), BytesOf(0, kBytes));
  ExpectNoHazard();
}

TEST_F(FakeDeviceTest, ALargerCopyTakesLongerAndCopiesShareTheLink) {
  const DevicePtr large = *device_->AllocateDevice(2 << 20);
  const PinnedBuffer source = *device_->AllocatePinned(1 << 20);
  const VirtualTime start = device_->Now();
  ASSERT_TRUE(Copy(a_, large, source));
  ASSERT_TRUE(device_->SynchronizeStream(a_));
  const VirtualTime alone = device_->Now() - start;
  EXPECT_GT(alone, microseconds(25));  // 27.6 us were measured
  EXPECT_LT(alone, microseconds(30));
  const VirtualTime again = device_->Now();
  ASSERT_TRUE(Copy(a_, large, source));
  ASSERT_TRUE(Copy(b_, large + (1 << 20), source));
  ASSERT_TRUE(device_->SynchronizeDevice());
  EXPECT_GT(device_->Now() - again, 2 * alone - microseconds(12));
  ExpectNoHazard();
}

TEST_F(FakeDeviceTest, APinnedSourceIsReadAtTheCallAtTheStartAtTheEndOrTorn) {
  struct Case {
    uint32_t read;
    std::map<ChoicePoint, uint32_t> chunks;
    int first_half;
    int second_half;
  };
  // The stream is held; the slot is rewritten to 2 before the copy starts and to 3 before it ends.
  const auto chunk = [](uint32_t index) { return ChoicePoint{9, ChoiceSite::kTornChunk, index}; };
  const std::vector<Case> cases = {
      {0, {}, 1, 1},
      {1, {}, 2, 2},
      {2, {}, 3, 3},
      {3, {{chunk(0), 0}, {chunk(1), 0}, {chunk(2), 2}, {chunk(3), 2}}, 1, 3},
  };
  for (const Case& c : cases) {
    std::map<ChoicePoint, uint32_t> script = c.chunks;
    script[{9, ChoiceSite::kSourceRead, 0}] = c.read;
    ResetWith(script);
    device_->BeginOperation(9);
    Fill(slot_, 1);
    ASSERT_TRUE(device_->Hold(a_));
    ASSERT_TRUE(Copy(a_, target_, slot_));
    FillUnannounced(slot_, 2);
    ASSERT_TRUE(device_->Release(a_));  // it starts
    FillUnannounced(slot_, 3);
    ASSERT_TRUE(device_->SynchronizeStream(a_));
    EXPECT_EQ(At(target_, 32), BytesOf(c.first_half, 32)) << "read " << c.read;
    EXPECT_EQ(At(target_ + 32, 32), BytesOf(c.second_half, 32)) << "read " << c.read;
    TheHazard(HazardKind::kUnannouncedWrite);  // whenever it was read
  }
}

TEST_F(FakeDeviceTest, APageableSourceIsCapturedAtTheCallOrBlocksOrIsReadLate) {
  for (const uint32_t mode : {0U, 1U, 2U}) {
    ResetWith({{{9, ChoiceSite::kPageable, 0}, mode}});
    device_->BeginOperation(9);
    std::vector<std::byte> source = BytesOf(1, kBytes);
    ASSERT_TRUE(device_->CopyAsync(target_, source, a_));
    EXPECT_EQ(At(target_), BytesOf(mode == 1 ? 1 : 0, kBytes)) << "mode " << mode;
    std::fill(source.begin(), source.end(), std::byte{2});
    ASSERT_TRUE(device_->SynchronizeStream(a_));
    EXPECT_EQ(At(target_), BytesOf(mode == 2 ? 2 : 1, kBytes)) << "mode " << mode;
    ExpectNoHazard();
  }
}

TEST_F(FakeDeviceTest, AnEnqueueMayBlockUntilItsOperationIsComplete) {
  ResetWith({{{9, ChoiceSite::kEnqueueBlocks, 0}, 1}});
  Fill(slot_, 1);
  device_->BeginOperation(9);
  ASSERT_TRUE(Copy(a_, target_, slot_));
  EXPECT_EQ(At(target_), BytesOf(1, kBytes));
}

TEST_F(FakeDeviceTest, AnEnqueueOnAHeldStreamNeverBlocksForEver) {
  ResetWith({{{9, ChoiceSite::kEnqueueBlocks, 0}, 1}});
  Fill(slot_, 1);
  ASSERT_TRUE(device_->Hold(a_));
  device_->BeginOperation(9);
  ASSERT_TRUE(Copy(a_, target_, slot_));
  EXPECT_EQ(At(target_), BytesOf(0, kBytes));
}

TEST_F(FakeDeviceTest, ABatchCopiesAllItsMembersInOneOperation) {
  const PinnedBuffer other = *device_->AllocatePinned(kBytes);
  Fill(slot_, 1);
  Fill(other, 2);
  const std::array<CopyEntry, 2> entries = {CopyEntry{target_, slot_.bytes()},
                                            CopyEntry{target_ + kBytes, other.bytes()}};
  ASSERT_TRUE(device_->CopyBatchAsync(entries, a_));
  ASSERT_TRUE(device_->SynchronizeStream(a_));
  EXPECT_EQ(At(target_), BytesOf(1, kBytes));
  EXPECT_EQ(At(target_ + kBytes), BytesOf(2, kBytes));
  EXPECT_EQ(device_->counters().batches, 1U);
  EXPECT_EQ(device_->counters().batch_copies, 2U);
  EXPECT_EQ(device_->counters().copies, 0U);
  EXPECT_EQ(device_->counters().bytes_copied, 2 * kBytes);
  ExpectNoHazard();
}

TEST_F(FakeDeviceTest, MembersOfABatchCompleteInAnyOrder) {
  for (const uint32_t last_first : {0U, 1U}) {
    ResetWith({{{9, ChoiceSite::kBatchOrder, 0}, last_first}});
    const PinnedBuffer other = *device_->AllocatePinned(kBytes);
    Fill(slot_, 1);
    Fill(other, 2);
    const std::array<CopyEntry, 2> entries = {CopyEntry{target_, slot_.bytes()},
                                              CopyEntry{target_, other.bytes()}};
    device_->BeginOperation(9);
    ASSERT_TRUE(device_->CopyBatchAsync(entries, a_));
    ASSERT_TRUE(device_->SynchronizeStream(a_));
    EXPECT_EQ(At(target_), BytesOf(last_first == 1 ? 1 : 2, kBytes));
    TheHazard(HazardKind::kUnorderedAccess);
  }
}

TEST_F(FakeDeviceTest, ABadDestinationIsAnErrorThatIssuesNothing) {
  const DevicePtr last = target_ + (4 * kBytes - 4);
  for (const DevicePtr to : {last, target_ + 4 * kBytes, DevicePtr(uint64_t{4096})}) {
    const Expected<void> copied = Copy(a_, to, slot_);
    ASSERT_FALSE(copied);
    EXPECT_EQ(copied.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(copied.error().device_code, 1);  // cudaErrorInvalidValue; not sticky
  }
  EXPECT_EQ(device_->counters().copies, 0U);
  EXPECT_TRUE(Copy(a_, target_, slot_));
  ExpectNoHazard();
}

TEST_F(FakeDeviceTest, ARangeInsideAnAllocationHasItsKind) {
  const std::byte* const slot = slot_.bytes().data();
  EXPECT_EQ(*device_->KindOf(slot_.bytes()), MemoryKind::kPinned);
  EXPECT_EQ(*device_->KindOf({slot + kBytes - 1, 1}), MemoryKind::kPinned);
  EXPECT_EQ(*device_->KindOf({slot + kBytes - 1, 2}), MemoryKind::kPageable);
  EXPECT_EQ(*device_->KindOf({slot - 1, kBytes}), MemoryKind::kPageable);
  EXPECT_EQ(*device_->KindOf({slot, 0}), MemoryKind::kPageable);
  const std::byte local{};
  EXPECT_EQ(*device_->KindOf({&local, 1}), MemoryKind::kPageable);
  const auto* const inside = static_cast<const std::byte*>((target_ + 8).pointer());
  EXPECT_EQ(device_->KindOf({inside, 1}).error().code, ErrorCode::kInvalidArgument);
}

TEST_F(FakeDeviceTest, ReleasedPinnedMemoryIsServedAgainAndTrimFreesIt) {
  FakeOptions options;
  options.pinned_limit_bytes = 1024;
  Reset(options);
  std::vector<PinnedBuffer> held;
  held.push_back(*device_->AllocatePinned(512));
  EXPECT_EQ(device_->AllocatePinned(512).error().code, ErrorCode::kResourceExhausted);
  held.clear();
  EXPECT_EQ(device_->counters().pinned_cached_bytes, 512U);
  held.push_back(*device_->AllocatePinned(400));
  EXPECT_EQ(device_->counters().pinned_driver_allocations, 2U);  // the fixture's slot and one
  held.clear();
  EXPECT_EQ(device_->AllocatePinned(768).error().code, ErrorCode::kResourceExhausted);
  ASSERT_TRUE(device_->Trim());
  EXPECT_TRUE(device_->AllocatePinned(768));
  ExpectNoHazard();
}

TEST_F(FakeDeviceTest, TrimWaitsForTheWholeDevice) {
  ASSERT_TRUE(device_->Launch(a_, {.name = "busy", .duration = microseconds(20'000)}));
  const VirtualTime before = device_->Now();
  ASSERT_TRUE(device_->Trim());
  EXPECT_GE(device_->Now() - before, microseconds(20'000));
}

TEST_F(FakeDeviceTest, FreshPinnedMemoryHoldsTheSameJunkInEveryRun) {
  const PinnedBuffer first = *device_->AllocatePinned(kBytes);
  const PinnedBuffer second = *FakeDevice::Create()->AllocatePinned(kBytes);
  EXPECT_EQ(std::memcmp(first.bytes().data(), second.bytes().data(), kBytes), 0);
  EXPECT_NE(first.bytes()[0], std::byte{0});
}

TEST_F(FakeDeviceTest, HandlesOutliveTheirDevice) {
  Event event = RecordOn(a_);
  PinnedBuffer buffer = *device_->AllocatePinned(kBytes);
  device_.reset();
  buffer.bytes()[0] = std::byte{1};
}

TEST_F(FakeDeviceTest, ReadBackWaitsForItsStreamAndSeesWhatCameBefore) {
  Fill(slot_, 5);
  ASSERT_TRUE(Copy(a_, target_, slot_));
  std::vector<std::byte> bytes(kBytes);
  ASSERT_TRUE(device_->ReadBack(target_, bytes, a_));
  EXPECT_EQ(bytes, BytesOf(5, kBytes));
  Fill(slot_, 6);  // allowed: the read back came after the copy
  ExpectNoHazard();
}

TEST_F(FakeDeviceTest, PokeAndPeekSeeTheBytesAsTheyAre) {
  ASSERT_TRUE(device_->Poke(target_ + 3, BytesOf(9, 5)));
  EXPECT_EQ(At(target_ + 3, 5), BytesOf(9, 5));
  EXPECT_EQ(At(target_ + 8, 1), BytesOf(0, 1));
}

TEST_F(FakeDeviceTest, APoisonedDeviceFailsEveryCallAndCompletesNothing) {
  Fill(slot_, 7);
  Event event = *device_->CreateEvent();
  ASSERT_TRUE(Copy(a_, target_, slot_));
  ASSERT_TRUE(device_->Record(event, a_));
  device_->Poison({ErrorCode::kDevice, 700, "An illegal address was accessed."});
  EXPECT_EQ(device_->Query(event).error().device_code, 700);
  EXPECT_EQ(device_->CreateEvent().error().device_code, 700);
  EXPECT_EQ(device_->AllocatePinned(8).error().device_code, 700);
  EXPECT_EQ(Copy(a_, target_, slot_).error().device_code, 700);
  EXPECT_EQ(device_->Record(event, a_).error().device_code, 700);
  const Event* const events[] = {&event};
  EXPECT_EQ(device_->WaitAny(events, {std::chrono::seconds(1)}).error().device_code, 700);
  EXPECT_EQ(device_->SynchronizeStream(a_).error().device_code, 700);
  EXPECT_EQ(device_->Trim().error().device_code, 700);
  EXPECT_EQ(At(target_), BytesOf(0, kBytes));
}

TEST_F(FakeDeviceTest, InAForkedChildCallsFailAndDestructorsDoNothing) {
  Event event = *device_->CreateEvent();
  const pid_t child = fork();
  if (child == 0) {
    const bool refused =
        device_->Query(event).error().code == ErrorCode::kFailedPrecondition &&
        device_->AllocatePinned(8).error().code == ErrorCode::kFailedPrecondition &&
        Copy(a_, target_, slot_).error().code == ErrorCode::kFailedPrecondition;
    { const PinnedBuffer dies_here = std::move(slot_); }
    _exit(refused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace h2d
