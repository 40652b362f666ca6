// How the chunks are divided: by streams, then by uploads, with one share left for who may come.
#include "h2d/stager/internal/chunk_shares.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <stop_token>
#include <utility>
#include <vector>

#include "h2d/device/fake/fake_device.h"
#include "h2d/device/faulty/faulty_device.h"

namespace h2d::internal {
namespace {

class ChunkSharesTest : public ::testing::Test {
 protected:
  // How many chunks the upload gets until it is told to wait.
  uint32_t TakeAll(ChunkShares::Upload& upload) {
    uint32_t taken = 0;
    while (shares_->TryTake(upload).value_or(false)) ++taken;
    return taken;
  }
  void Leave(const std::shared_ptr<ChunkShares::Upload>& upload) {
    while (upload->in_use > 0) shares_->GiveBack(*upload);
    shares_->Leave(upload);
  }
  StreamId IdOf(const Stream& stream) { return fake_->Inspect(stream)->id; }

  const std::shared_ptr<FakeDevice> fake_ = FakeDevice::Create();
  const std::shared_ptr<FaultyDevice> faulty_ = FaultyDevice::Create(fake_);
  const Stream a_ = fake_->NewStream("a");
  const Stream b_ = fake_->NewStream("b");
  std::unique_ptr<ChunkShares> shares_ = std::make_unique<ChunkShares>(faulty_, 12);
};

TEST_F(ChunkSharesTest, EachStreamGetsItsPartAndOneMoreMayCome) {
  const auto first = shares_->Join(1);
  EXPECT_EQ(TakeAll(*first), 6U);
  const auto second = shares_->Join(2);
  EXPECT_EQ(TakeAll(*second), 4U);
  const auto third = shares_->Join(3);
  EXPECT_EQ(TakeAll(*third), 2U);  // what is left
  while (first->in_use > 0) shares_->GiveBack(*first);
  EXPECT_EQ(TakeAll(*third), 1U);
  EXPECT_EQ(TakeAll(*first), 3U);
  for (const auto& upload : {first, second, third}) Leave(upload);
}

TEST_F(ChunkSharesTest, UploadsOfOneStreamDivideItsPart) {
  const auto first = shares_->Join(1);
  EXPECT_EQ(TakeAll(*first), 6U);
  const auto second = shares_->Join(1);
  EXPECT_EQ(TakeAll(*second), 0U);
  for (int i = 0; i < 2; ++i) shares_->GiveBack(*first);
  EXPECT_EQ(TakeAll(*first), 0U) << "it has more than its half";
  EXPECT_EQ(TakeAll(*second), 2U);
  for (const auto& upload : {first, second}) Leave(upload);
}

TEST_F(ChunkSharesTest, AnUploadGetsNoMoreThanItWants) {
  const auto modest = shares_->Join(1, 3);
  EXPECT_EQ(TakeAll(*modest), 3U);
  const auto other = shares_->Join(1);
  EXPECT_EQ(TakeAll(*other), 3U) << "half of the stream's part";
  shares_->GiveBack(*modest);
  EXPECT_EQ(TakeAll(*modest), 1U);
  for (const auto& upload : {modest, other}) Leave(upload);
  const auto none = shares_->Join(1, 0);
  EXPECT_EQ(TakeAll(*none), 1U) << "one at least, or it would wait for ever";
  Leave(none);
}

TEST_F(ChunkSharesTest, ManyUploadsGetOneChunkEach) {
  std::vector<std::shared_ptr<ChunkShares::Upload>> uploads;
  for (StreamId id = 1; id <= 20; ++id) uploads.push_back(shares_->Join(id));
  for (int i = 0; i < 12; ++i) EXPECT_EQ(TakeAll(*uploads[static_cast<size_t>(i)]), 1U);
  EXPECT_EQ(TakeAll(*uploads[12]), 0U);
  for (const auto& upload : uploads) Leave(upload);
}

// Uploads that have returned still count for their stream while their chunks are in flight.
TEST_F(ChunkSharesTest, AStuckStreamKeepsItsPartAndNoMore) {
  ASSERT_TRUE(fake_->Hold(a_));
  for (const uint32_t expected : {6U, 0U}) {
    const auto upload = shares_->Join(IdOf(a_));
    uint32_t taken = 0;
    while (shares_->TryTake(*upload).value_or(false)) {
      shares_->InFlight(upload, a_);
      ++taken;
    }
    EXPECT_EQ(taken, expected);
    shares_->Leave(upload);
  }
  const auto other = shares_->Join(IdOf(b_));
  EXPECT_EQ(TakeAll(*other), 4U);
  ASSERT_TRUE(fake_->Release(a_));
  fake_->RunUntilIdle();
  EXPECT_EQ(TakeAll(*other), 2U) << "the other stream's chunks came back";
  Leave(other);
}

// Its stream may never be used again, and nobody else may use it.
TEST_F(ChunkSharesTest, AShareWhoseRecordFailedComesBackAtOnce) {
  ASSERT_TRUE(fake_->Hold(a_));
  const auto upload = shares_->Join(IdOf(a_));
  for (const FaultTiming timing : {FaultTiming::kBeforeCall, FaultTiming::kAfterCall}) {
    ASSERT_TRUE(shares_->TryTake(*upload).value_or(false));
    faulty_->Inject({.kind = CallKind::kRecord,
                     .call = faulty_->CallCount(CallKind::kRecord) + 1,
                     .timing = timing});
    shares_->InFlight(upload, a_);
    EXPECT_EQ(upload->in_use, 0U);
  }
  Leave(upload);
  ASSERT_TRUE(fake_->Release(a_));
}

// One event for several chunks of an upload that goes on, and for what is left at its end.
TEST_F(ChunkSharesTest, AQuarterOfAnUploadsPartSharesAnEvent) {
  shares_ = std::make_unique<ChunkShares>(faulty_, 32);  // 16 for a stream
  const auto upload = shares_->Join(IdOf(a_));
  const auto enqueue = [&](int chunks) {
    for (int i = 0; i < chunks; ++i) {
      ASSERT_TRUE(shares_->TryTake(*upload).value_or(false));
      shares_->InFlight(upload, a_, /*more=*/true);
    }
  };
  enqueue(3);
  EXPECT_EQ(fake_->counters().records, 0U);
  enqueue(1);
  EXPECT_EQ(fake_->counters().records, 1U);
  enqueue(2);
  shares_->Record(*upload, a_);
  shares_->Record(*upload, a_);
  EXPECT_EQ(fake_->counters().records, 2U);
  fake_->RunUntilIdle();
  EXPECT_EQ(upload->in_use, 6U);
  EXPECT_EQ(TakeAll(*upload), 16U) << "all six came back";
  Leave(upload);
}

// first:   takes all of the stream's part, enqueues one chunk ... reads slowly
// second:                                  comes, or has come, and waits for that chunk
TEST_F(ChunkSharesTest, NoUploadWaitsForAChunkOfItsStreamThatLacksAnEvent) {
  for (const bool comes_later : {true, false}) {
    shares_ = std::make_unique<ChunkShares>(faulty_, 32);  // 16 for a stream
    const auto first = shares_->Join(IdOf(a_));
    EXPECT_EQ(TakeAll(*first), 16U);
    std::shared_ptr<ChunkShares::Upload> second;
    const auto come = [&] {
      second = shares_->Join(IdOf(a_));
      shares_->Record(*second, a_);
    };
    const uint64_t before = fake_->counters().records;
    if (!comes_later) come();
    shares_->InFlight(first, a_, /*more=*/true);
    if (comes_later) come();
    EXPECT_EQ(fake_->counters().records, before + 1);
    const auto taken = shares_->WaitToTake(*second, 1, std::chrono::milliseconds(5), {});
    EXPECT_TRUE(taken) << taken.error().ToString();
    for (const auto& upload : {first, second}) Leave(upload);
  }
}

TEST_F(ChunkSharesTest, AnEventThatFailsToAnswerFailsNoUploadOfAnotherStream) {
  shares_ = std::make_unique<ChunkShares>(faulty_, 2);
  const auto first = shares_->Join(IdOf(a_));
  const auto second = shares_->Join(IdOf(b_));
  for (const auto& [upload, stream] : {std::pair(first, a_), std::pair(second, b_)}) {
    ASSERT_TRUE(shares_->TryTake(*upload).value_or(false));
    shares_->InFlight(upload, stream);
  }
  KernelSpec busy;
  busy.name = "busy";
  busy.duration = std::chrono::milliseconds(5);
  ASSERT_TRUE(fake_->Launch(b_, busy));
  ASSERT_TRUE(fake_->Hold(a_));
  // The first query is of the older stream's event.
  faulty_->Inject({.kind = CallKind::kQuery, .call = faulty_->CallCount(CallKind::kQuery) + 1});
  const auto taken =
      shares_->WaitToTake(*second, 1, std::chrono::milliseconds(50), std::stop_token());
  EXPECT_TRUE(taken) << taken.error().ToString();
  for (const auto& upload : {first, second}) shares_->Leave(upload);
  shares_->GiveBack(*second);
  ASSERT_TRUE(fake_->Release(a_));
}

// first:   takes the only chunk ............... enqueues it
// second:                        nothing to wait for: waits to be told
TEST_F(ChunkSharesTest, AWaitIsToldOfChunksThatAreEnqueuedMeanwhile) {
  shares_ = std::make_unique<ChunkShares>(faulty_, 1);
  const auto first = shares_->Join(IdOf(a_));
  const auto second = shares_->Join(IdOf(b_));
  ASSERT_TRUE(shares_->TryTake(*first).value_or(false));
  faulty_->SetHook(CallKind::kWaitAny, [&, done = false](uint64_t) mutable {
    if (!std::exchange(done, true)) shares_->InFlight(first, a_);  // another thread
  });
  ASSERT_TRUE(shares_->WaitToTake(*second, 1, std::chrono::seconds(3), std::stop_token()));
  EXPECT_LT(fake_->Now(), std::chrono::seconds(1));
  faulty_->SetHook(CallKind::kWaitAny, {});
  shares_->Leave(first);
  Leave(second);
}

// Threads put what they recorded in flight in any order: here the older place is still pending.
TEST_F(ChunkSharesTest, AChunkThatAWaitLearntToBeReadComesBackWhateverIsBeforeIt) {
  shares_ = std::make_unique<ChunkShares>(faulty_, 4);
  const auto first = shares_->Join(IdOf(a_));
  ASSERT_TRUE(fake_->Hold(a_));
  for (const Stream& stream : {a_, b_}) {
    ASSERT_TRUE(shares_->TryTake(*first).value_or(false));
    shares_->InFlight(first, stream);  // under one identity
  }
  const auto taken = shares_->WaitToTake(*first, 1, std::chrono::milliseconds(5), {});
  EXPECT_TRUE(taken) << taken.error().ToString();
  ASSERT_TRUE(fake_->Release(a_));
  shares_->GiveBack(*first);
  shares_->Leave(first);
}

TEST_F(ChunkSharesTest, AStopEndsAWait) {
  shares_ = std::make_unique<ChunkShares>(faulty_, 1);
  const auto first = shares_->Join(1);
  const auto second = shares_->Join(2);
  ASSERT_TRUE(shares_->TryTake(*first).value_or(false));
  std::stop_source stop;
  faulty_->SetHook(CallKind::kWaitAny, [&](uint64_t) { stop.request_stop(); });
  const auto taken = shares_->WaitToTake(*second, 1, std::chrono::seconds(3), stop.get_token());
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(taken.error().message.find("told to stop"), std::string::npos) << taken.error().message;
  EXPECT_LT(fake_->Now(), std::chrono::seconds(1));
  for (const auto& upload : {first, second}) Leave(upload);
}

}  // namespace
}  // namespace h2d::internal
