// The uploader on the device under test: each kind of source arrives, and is let go in time.
#include "h2d/stager/uploader.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "h2d/device/conformance/stager_fixture.h"

namespace h2d::conformance {
namespace {

// Sources of one chunk, of several, of many with a rest; more than a device copies at its call.
constexpr uint64_t kSizes[] = {1, 1000, 100'003, 1'100'003};

class UploaderFixture : public StagerFixture {
 protected:
  void SetUp() override {
    StagerFixture::SetUp();
    if (IsSkipped()) return;
    UploaderOptions options;
    options.threads = 2;
    options.chunk_bytes = uint64_t{1} << 20;
    options.min_chunk_bytes = uint64_t{16} << 10;
    options.max_chunks = 8;
    options.max_pinned_bytes = uint64_t{16} << 20;
    options.ring_bytes = 4096;
    uploader_ = Must(Uploader::Create(harness().device(), options));
  }
  void TearDown() override {
    harness().Quiesce();
    uploader_.reset();
    StagerFixture::TearDown();
  }

  Uploader& uploader() { return *uploader_; }
  Destination BytesAt(uint64_t bytes) {
    return {.ptr = NewMemory(bytes), .count = bytes, .element_bytes = 1};
  }
  void ExpectArrives(UploadSource source, const std::vector<std::byte>& expected,
                     const Stream& stream) {
    const Destination to = BytesAt(expected.size());
    Must(uploader().Upload(to, std::move(source), stream));
    EXPECT_TRUE(ReadBack(to.ptr, expected.size(), stream) == expected);
  }

 private:
  std::unique_ptr<Uploader> uploader_;
};

using AnUploader = UploaderFixture;
using HeldUploader = UploaderFixture;
using UploaderCapture = UploaderFixture;

TEST_F(AnUploader, BringsMemoryWhole) {
  const Stream stream = NewStream();
  for (const uint64_t bytes : kSizes) {
    SCOPED_TRACE(bytes);
    const std::vector<std::byte> values = Pattern(bytes, 1);
    ExpectArrives(UploadSource::Memory(values), values, stream);
    ExpectArrives(UploadSource::Mapping(values), values, stream);
    ExpectArrives(UploadSource::Memory(NewPinned(values).bytes()), values, stream);
  }
}

TEST_F(AnUploader, BringsAFileWhole) {
  const Stream stream = NewStream();
  for (const uint64_t bytes : kSizes) {
    SCOPED_TRACE(bytes);
    const std::vector<std::byte> values = Pattern(bytes + 7, 2);
    std::FILE* const file = std::tmpfile();
    EXPECT_EQ(std::fwrite(values.data(), 1, values.size(), file), values.size());
    EXPECT_EQ(std::fflush(file), 0);
    ExpectArrives(UploadSource::File(fileno(file), 7, bytes), {values.begin() + 7, values.end()},
                  stream);
    std::fclose(file);
  }
}

TEST_F(AnUploader, UsesTheDefaultStreams) {
  const std::vector<std::byte> values = Pattern(100'003, 3);
  ExpectArrives(UploadSource::Memory(values), values, harness().LegacyStream());
  ExpectArrives(UploadSource::Memory(values), values, harness().PerThreadStream());
}

TEST_F(AnUploader, ReleasesAnOwnedPinnedSourceOnceItWasRead) {
  const Stream stream = NewStream();
  PinnedBuffer pinned = Must(device().AllocatePinned(100'003));
  Write(pinned, Pattern(100'003, 4));
  const auto memory = pinned.bytes();
  const Destination to = BytesAt(memory.size());
  const UploadTicket ticket = Must(uploader().Upload(
      to, UploadSource::Memory(memory).KeptAliveBy(HeldSource(std::move(pinned))), stream));
  EXPECT_TRUE(ReadBack(to.ptr, to.count, stream) == Pattern(100'003, 4));
  // Read back in stream order, the copy is done; a device may take a while to say so.
  for (int i = 0; i < 1'000'000 && !Must(uploader().SourceReusable(ticket)); ++i) {
  }
  EXPECT_TRUE(Must(uploader().SourceReusable(ticket)));
}

TEST_F(AnUploader, RefusesDeviceMemoryAsASource) {
  const Destination to = BytesAt(16);
  const auto* const data = static_cast<const std::byte*>(to.ptr.pointer());
  EXPECT_EQ(CodeOf(uploader().Upload(BytesAt(16), UploadSource::Memory(std::span(data, 16)),
                                     NewStream())),
            ErrorCode::kInvalidArgument);
}

TEST_F(AnUploader, ServesSeveralThreadsAtOnce) {
  constexpr uint32_t kThreads = 4;
  std::vector<Stream> streams;
  std::vector<Destination> targets;
  for (uint32_t i = 0; i < kThreads; ++i) {
    streams.push_back(i == 1 ? streams[0] : NewStream());
    targets.push_back(BytesAt(500'009));
  }
  std::vector<Expected<void>> results(kThreads);
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      const std::vector<std::byte> values = Pattern(targets[i].count, i);
      for (int round = 0; round < 2 && results[i]; ++round) {
        auto ticket = uploader().Upload(targets[i], UploadSource::Memory(values), streams[i]);
        if (!ticket) results[i] = ErrorOf(ticket);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (uint32_t i = 0; i < kThreads; ++i) {
    Must(results[i]);
    EXPECT_TRUE(ReadBack(targets[i].ptr, targets[i].count, streams[i]) ==
                Pattern(targets[i].count, i));
  }
}

TEST_F(HeldUploader, MemoryMayBeOverwrittenWhenTheCallReturned) {
  const Stream stream = NewHeldStream();
  std::vector<std::byte> values = Pattern(60'000, 5);  // as many chunks as one stream gets
  const Destination to = BytesAt(values.size());
  const UploadTicket ticket = Must(uploader().Upload(to, UploadSource::Memory(values), stream));
  EXPECT_TRUE(Must(uploader().SourceReusable(ticket)));
  values.assign(values.size(), std::byte{0});
  Must(harness().Release(stream));
  EXPECT_TRUE(ReadBack(to.ptr, to.count, stream) == Pattern(60'000, 5));
}

TEST_F(HeldUploader, APinnedSourceIsNotReusableBeforeItWasRead) {
  const Stream stream = NewHeldStream();
  const std::vector<std::byte> values = Pattern(200'000, 6);
  const PinnedBuffer& pinned = NewPinned(values);
  const Destination to = BytesAt(values.size());
  const UploadTicket ticket =
      Must(uploader().Upload(to, UploadSource::Memory(pinned.bytes()), stream));
  RunAround();
  EXPECT_FALSE(Must(uploader().SourceReusable(ticket)));
  Must(harness().Release(stream));
  EXPECT_TRUE(ReadBack(to.ptr, to.count, stream) == values);
}

TEST_F(HeldUploader, AStuckStreamLeavesChunksToOthers) {
  const Stream stuck = NewHeldStream();
  const Stream free = NewStream();
  const std::vector<std::byte> values = Pattern(60'000, 7);  // as many chunks as one stream gets
  const Destination on_stuck = BytesAt(values.size());
  Must(uploader().Upload(on_stuck, UploadSource::Memory(values), stuck));
  const std::vector<std::byte> large = Pattern(1'100'003, 8);
  ExpectArrives(UploadSource::Memory(large), large, free);
  Must(harness().Release(stuck));
  EXPECT_TRUE(ReadBack(on_stuck.ptr, on_stuck.count, stuck) == values);
}

TEST_F(UploaderCapture, ACapturingStreamIsRefusedBeforeAnythingIsRecorded) {
  const Stream stream = NewStream();
  const std::vector<std::byte> values = Pattern(100'000, 9);
  const PinnedBuffer& pinned = NewPinned(values);
  const Destination to = BytesAt(values.size());
  for (const CaptureMode mode : kCaptureModes) {
    Must(harness().BeginCapture(stream, mode));
    const auto pageable = uploader().Upload(to, UploadSource::Memory(values), stream);
    const auto direct = uploader().Upload(to, UploadSource::Memory(pinned.bytes()), stream);
    const std::unique_ptr<Graph> graph = Must(harness().EndCapture(stream));
    EXPECT_EQ(CodeOf(pageable), ErrorCode::kFailedPrecondition);
    EXPECT_EQ(CodeOf(direct), ErrorCode::kFailedPrecondition);
    Must(harness().Replay(*graph, stream));
    EXPECT_TRUE(ReadBack(to.ptr, to.count, stream) == std::vector<std::byte>(to.count));
  }
}

TEST_F(UploaderCapture, AnUploadBesideACaptureLeavesItAlone) {
  const Stream captured = NewStream();
  const Stream stream = NewStream();
  const DevicePtr written = NewMemory(64);
  const std::vector<std::byte> values = Pattern(1'100'003, 10);
  const Destination to = BytesAt(values.size());
  for (const CaptureMode mode : kCaptureModes) {
    Must(harness().BeginCapture(captured, mode));
    Must(harness().Fill(written, std::byte{3}, 64, captured));
    const auto ticket = uploader().Upload(to, UploadSource::Memory(values), stream);
    const Expected<bool> reusable = ticket ? uploader().SourceReusable(*ticket) : false;
    const std::unique_ptr<Graph> graph = Must(harness().EndCapture(captured));
    Must(ticket);
    EXPECT_TRUE(Must(reusable));
    Must(harness().Replay(*graph, captured));
    EXPECT_TRUE(ReadBack(written, 64, captured) == std::vector<std::byte>(64, std::byte{3}));
    EXPECT_TRUE(ReadBack(to.ptr, to.count, stream) == values);
  }
}

}  // namespace
}  // namespace h2d::conformance
