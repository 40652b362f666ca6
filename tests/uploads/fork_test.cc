// In a forked child calls of an inherited release queue or uploader fail, and the end of either
// does nothing (I9); also when the fork came while the library held its locks. The child answers
// with its exit status: the number of the first check that failed, or 0.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "h2d/device/faulty/faulty_device.h"
#include "h2d/device/host/host_device.h"
#include "h2d/device/testing/child_process.h"
#include "h2d/stager/release_queue.h"
#include "h2d/stager/uploader.h"

namespace h2d {
namespace {

using testing::IsRefused;
using testing::StatusOfChild;

class UploadsFork : public ::testing::Test {
 protected:
  const std::shared_ptr<HostDevice> host_ = HostDevice::Create();
  const std::shared_ptr<FaultyDevice> device_ = FaultyDevice::Create(host_);
  const Stream stream_ = host_->NewStream();
};

TEST_F(UploadsFork, CallsOfAQueueFailAndItsEndReleasesNothing) {
  auto queue = ReleaseQueue::Create(device_).value();
  int released = 0;
  ASSERT_TRUE(queue->Push(HeldSource([&] { ++released; }, 8), stream_));
  std::optional room = queue->Reserve(8, stream_).value();
  std::optional unused = queue->Reserve(8, stream_).value();
  const auto in_child = [&] {
    HeldSource source([] {}, 8);
    if (!IsRefused(queue->Push(std::move(source), stream_)) || !source) return 1;
    if (!IsRefused(queue->Push(std::move(source), stream_, std::move(*room))) || !source) return 2;
    if (!IsRefused(queue->Reserve(8, stream_))) return 3;
    if (!IsRefused(queue->Flush(stream_))) return 4;
    if (!IsRefused(queue->ShouldFlush(stream_))) return 5;
    if (!IsRefused(queue->Poll())) return 6;
    if (!IsRefused(queue->Drain())) return 7;
    static_cast<void>(queue->stats());
    unused.reset();
    queue.reset();
    return released == 0 ? 0 : 8;
  };
  // Between two calls, and within one that holds the queue's lock.
  EXPECT_EQ(StatusOfChild(in_child), 0);
  int within = -1;
  ASSERT_TRUE(queue->Flush(stream_));
  device_->SetHook(CallKind::kQuery, [&](uint64_t) { within = StatusOfChild(in_child); });
  EXPECT_TRUE(queue->Poll());
  device_->SetHook(CallKind::kQuery, {});
  EXPECT_EQ(within, 0);
  EXPECT_EQ(released, 1) << "the parent goes on";
}

TEST_F(UploadsFork, CallsOfAnUploaderFailAndItsEndDoesNothing) {
  UploaderOptions options;
  options.wake_bytes = 1;  // it has threads, which the child has not
  auto uploader = Uploader::Create(device_, options).value();
  std::vector<std::byte> source(1 << 20, std::byte{7});
  std::vector<std::byte> memory(source.size());
  const Destination to = Destination::Of(memory.data(), memory.size());
  PinnedBuffer pinned = host_->AllocatePinned(64).value();
  int ended = 0;
  const auto direct = [&] {
    return UploadSource::Memory(pinned.bytes()).KeptAliveBy(HeldSource([&] { ++ended; }, 64));
  };
  const auto read = uploader->Upload(to, UploadSource::Memory(source), stream_);
  const auto kept = uploader->Upload(to, direct(), stream_);
  ASSERT_TRUE(read && kept);
  const int ended_before = ended;
  const auto in_child = [&] {
    if (!IsRefused(uploader->Upload(to, UploadSource::Memory(source), stream_))) return 1;
    if (!IsRefused(uploader->Upload({}, UploadSource::File(-1, 0, 0), stream_))) return 2;
    if (!IsRefused(uploader->SourceReusable(*read))) return 3;
    if (!IsRefused(uploader->SourceReusable(*kept))) return 4;
    static_cast<void>(uploader->stats());
    uploader.reset();
    return ended == ended_before ? 0 : 5;
  };
  EXPECT_EQ(StatusOfChild(in_child), 0);
  int within = -1;
  device_->SetHook(CallKind::kQuery, [&](uint64_t) { within = StatusOfChild(in_child); });
  static_cast<void>(uploader->SourceReusable(*kept));
  device_->SetHook(CallKind::kQuery, {});
  EXPECT_EQ(within, 0);
  EXPECT_TRUE(uploader->Upload(to, UploadSource::Memory(source), stream_)) << "the parent goes on";
}

}  // namespace
}  // namespace h2d
