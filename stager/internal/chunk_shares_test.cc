// How the chunks are divided: by streams, then by uploads, with one share left for who may come.
#include "h2d/stager/internal/chunk_shares.h"

#include <gtest/gtest.h>

#include <memory>

#include "h2d/device/fake/fake_device.h"

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
  const Stream a_ = fake_->NewStream("a");
  const Stream b_ = fake_->NewStream("b");
  std::unique_ptr<ChunkShares> shares_ = std::make_unique<ChunkShares>(fake_, 12);
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

}  // namespace
}  // namespace h2d::internal
