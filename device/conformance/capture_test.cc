// Captures: what a device says of them, and that none of its calls hurts one (I7).
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "h2d/device/conformance/capture_fixture.h"

namespace h2d::conformance {
namespace {

using Capture = CaptureFixture;

TEST_F(Capture, InspectSaysSoAndTheCaptureEndsWell) {
  const Stream stream = NewStream();
  const StreamStatus before = Must(device().Inspect(stream));
  EXPECT_FALSE(before.capturing);
  for (const CaptureMode mode : kCaptureModes) {
    SCOPED_TRACE(ToString(mode));
    Must(harness().BeginCapture(stream, mode));
    const Expected<StreamStatus> during = device().Inspect(stream);
    Must(harness().EndCapture(stream));
    EXPECT_TRUE(Must(during).capturing);
    EXPECT_EQ(Must(during).id, 0U);
  }
  const StreamStatus after = Must(device().Inspect(stream));
  EXPECT_FALSE(after.capturing);
  EXPECT_EQ(after.id, before.id);
}

TEST_F(Capture, AnInvalidatedCaptureIsOneUntilItEnds) {
  const Stream stream = NewStream();
  Must(harness().BeginCapture(stream, CaptureMode::kThreadLocal));
  Must(harness().InvalidateCapture(stream));
  const Expected<StreamStatus> status = device().Inspect(stream);
  EXPECT_FALSE(harness().EndCapture(stream).has_value());
  EXPECT_TRUE(Must(status).capturing);
  EXPECT_FALSE(Must(device().Inspect(stream)).capturing);
}

// captured: [begin .. record(e) .................. wait(f) .. end]
// joined:                        wait(e) record(f)                  part of the capture in between
TEST_F(Capture, AStreamThatJoinedByAWaitIsCapturingToo) {
  const Stream captured = NewStream();
  const Stream joined = NewStream();
  Event fork_point = NewEvent();
  Event join_point = NewEvent();
  Must(harness().BeginCapture(captured, CaptureMode::kGlobal));
  Must(device().Record(fork_point, captured));
  Must(device().WaitEvent(joined, fork_point));
  const Expected<StreamStatus> status = device().Inspect(joined);
  Must(device().Record(join_point, joined));
  Must(device().WaitEvent(captured, join_point));
  Must(harness().EndCapture(captured));
  EXPECT_TRUE(Must(status).capturing);
  EXPECT_FALSE(Must(device().Inspect(joined)).capturing);
}

TEST_F(Capture, TheLegacyStreamBesideACapturingBlockingStreamCountsAsCapturing) {
  const Stream blocking = NewStream(StreamFlavor::kBlocking);
  Must(harness().BeginCapture(blocking, CaptureMode::kThreadLocal));
  const Expected<StreamStatus> status = device().Inspect(harness().LegacyStream());
  Must(harness().EndCapture(blocking));
  EXPECT_TRUE(Must(status).capturing);
  EXPECT_FALSE(Must(device().Inspect(harness().LegacyStream())).capturing);
}

TEST_F(Capture, TheLegacyStreamBesideACapturingNonBlockingStreamDoesNot) {
  const Stream stream = NewStream(StreamFlavor::kNonBlocking);
  Must(harness().BeginCapture(stream, CaptureMode::kThreadLocal));
  const Expected<StreamStatus> status = device().Inspect(harness().LegacyStream());
  Must(harness().EndCapture(stream));
  EXPECT_FALSE(Must(status).capturing);
}

// The reason to refuse captures: the graph keeps the address, not the bytes.
TEST_F(Capture, ACapturedCopyReadsItsSourceAtEachReplay) {
  harness().ExpectMisuse();
  const Stream stream = NewStream();
  const DevicePtr ptr = NewMemory(64);
  const PinnedBuffer& source = NewPinned(Pattern(64, 11));
  Must(harness().BeginCapture(stream, CaptureMode::kRelaxed));
  const Expected<void> copied = device().CopyAsync(ptr, source.bytes(), stream);
  const std::unique_ptr<Graph> graph = Must(harness().EndCapture(stream));
  Must(copied);
  Write(source, Pattern(64, 22));
  Must(harness().Replay(*graph, stream));
  EXPECT_TRUE(ReadBack(ptr, 64, stream) == Pattern(64, 22));
}

TEST_F(Capture, QueriesAndWaitsHurtNone) {
  const Event complete = CopyOn(NewStream());
  Await(complete);
  const Stream held = NewHeldStream();
  const Event pending = CopyOn(held);
  const std::array<const Event*, 2> events = {&pending, &complete};
  SurvivesCaptures([&] {
    EXPECT_TRUE(IsPending(pending));
    EXPECT_EQ(Must(device().WaitAny(events, {.timeout = std::chrono::seconds(20)})), 1U);
    EXPECT_EQ(Must(device().WaitAny(std::span(events).first(1),
                                    {.timeout = std::chrono::milliseconds(1)})),
              std::nullopt);
  });
  Must(harness().Release(held));
  Await(pending);
}

TEST_F(Capture, AllocationReleaseAndTrimHurtNone) {
  uint64_t bytes = 1 << 20;
  SurvivesCaptures([&] {
    // Ever larger, so that the cache cannot serve it.
    { const PinnedBuffer buffer = Must(device().AllocatePinned(bytes *= 2)); }
    Must(device().Trim());
  });
}

TEST_F(Capture, EventsComeAndGoBesideIt) {
  SurvivesCaptures([&] { const Event event = NewEvent(); });
}

TEST_F(Capture, WorkOnOtherStreamsGoesOn) {
  const Stream stream = NewStream();
  const Stream waiter = NewStream();
  const DevicePtr ptr = NewMemory(64);
  const PinnedBuffer& source = NewPinned(Pattern(64, 3));
  const PinnedBuffer& batch_source = NewPinned(Pattern(64, 4));
  const CopyEntry entry = {NewMemory(64), batch_source.bytes()};
  Event event = NewEvent();
  SurvivesCaptures([&] {
    Must(device().CopyAsync(ptr, source.bytes(), stream));
    Must(device().CopyBatchAsync(std::span(&entry, 1), stream));
    Must(device().Record(event, stream));
    Must(device().WaitEvent(waiter, event));
    Await(event);
  });
  EXPECT_TRUE(ReadBack(ptr, 64, waiter) == Pattern(64, 3));
}

TEST_F(Capture, QuestionsAboutStreamsAndMemoryHurtNone) {
  const Stream stream = NewStream();
  const PinnedBuffer& pinned = NewPinned(Pattern(64, 3));
  const StreamId id = Must(device().Inspect(stream)).id;
  SurvivesCaptures([&] {
    EXPECT_EQ(Must(device().Inspect(stream)).id, id);
    EXPECT_FALSE(Must(device().Inspect(harness().PerThreadStream())).capturing);
    EXPECT_EQ(Must(device().KindOf(pinned.bytes())), MemoryKind::kPinned);
  });
}

}  // namespace
}  // namespace h2d::conformance
