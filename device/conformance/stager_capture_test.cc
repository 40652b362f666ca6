// The stager beside captures (I7): it refuses capturing streams and hurts no capture.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "h2d/device/conformance/stager_fixture.h"

namespace h2d::conformance {
namespace {

using StagerCapture = StagerFixture;

// Hits included: a skip would make a graph rely on what it did not record.
TEST_F(StagerCapture, ACapturingStreamIsRefusedBeforeAnythingIsRecorded) {
  const Stream stream = NewStream();
  PinnedStager& stager = NewStager();
  const Destination destination = NewDestination(100);
  const Destination mirrored = NewDestination(100);
  H2DMirror mirror = Must(stager.NewMirror(mirrored));
  Must(stager.Copy(mirror, Values(100, 1), stream));
  for (const CaptureMode mode : kCaptureModes) {
    SCOPED_TRACE(ToString(mode));
    Must(harness().BeginCapture(stream, mode));
    const Expected<CopyOutcome> plain = stager.Copy(destination, Values(100, 2), stream);
    const Expected<CopyOutcome> hit = stager.Copy(mirror, Values(100, 1), stream);
    const Expected<void> recorded = mirror.Record(Values(100, 3), stream);
    const std::unique_ptr<Graph> graph = Must(harness().EndCapture(stream));
    EXPECT_EQ(CodeOf(plain), ErrorCode::kFailedPrecondition);
    EXPECT_EQ(CodeOf(hit), ErrorCode::kFailedPrecondition);
    EXPECT_EQ(CodeOf(recorded), ErrorCode::kFailedPrecondition);
    Must(harness().Replay(*graph, stream));
    EXPECT_TRUE(Read(destination, stream) == std::vector<int32_t>(100, 0));
    EXPECT_TRUE(Read(mirrored, stream) == Values(100, 1));
    Must(stager.Copy(mirror, Values(100, 1), stream));
  }
}

TEST_F(StagerCapture, ALeaseRefusedByACaptureMayBeSubmittedAgain) {
  const Stream stream = NewStream();
  PinnedStager& stager = NewStager();
  const Destination destination = NewDestination(100);
  SlotLease lease = Must(stager.Acquire(400));
  device().OnHostAccess(lease.bytes(), HostAccess::kWrite);
  std::ranges::copy(Values(100, 4), lease.as<int32_t>().begin());
  Must(harness().BeginCapture(stream, CaptureMode::kGlobal));
  const Expected<CopyOutcome> refused = lease.Submit(destination, stream);
  Must(harness().EndCapture(stream));
  EXPECT_EQ(CodeOf(refused), ErrorCode::kFailedPrecondition);
  Must(lease.Submit(destination, stream));
  EXPECT_TRUE(Read(destination, stream) == Values(100, 4));
}

TEST_F(StagerCapture, AStreamThatJoinedACaptureIsRefused) {
  const Stream captured = NewStream();
  const Stream joined = NewStream();
  PinnedStager& stager = NewStager();
  const Destination destination = NewDestination(100);
  Event fork_point = NewEvent();
  Event join_point = NewEvent();
  Must(harness().BeginCapture(captured, CaptureMode::kGlobal));
  Must(device().Record(fork_point, captured));
  Must(device().WaitEvent(joined, fork_point));
  const Expected<CopyOutcome> refused = stager.Copy(destination, Values(100, 2), joined);
  Must(device().Record(join_point, joined));
  Must(device().WaitEvent(captured, join_point));
  Must(harness().EndCapture(captured));
  EXPECT_EQ(CodeOf(refused), ErrorCode::kFailedPrecondition);
}

TEST_F(StagerCapture, TheLegacyStreamBesideACapturingBlockingStreamIsRefused) {
  const Stream blocking = NewStream(StreamFlavor::kBlocking);
  PinnedStager& stager = NewStager();
  const Destination destination = NewDestination(100);
  Must(harness().BeginCapture(blocking, CaptureMode::kThreadLocal));
  const Expected<CopyOutcome> refused =
      stager.Copy(destination, Values(100, 2), harness().LegacyStream());
  Must(harness().EndCapture(blocking));
  EXPECT_EQ(CodeOf(refused), ErrorCode::kFailedPrecondition);
}

TEST_F(StagerCapture, CopiesThroughASmallRingHurtNone) {
  const Stream stream = NewStream();
  PinnedStager& stager = NewStager({.slot_bytes = 4000, .initial_slots = 2, .max_slots = 2});
  const Destination destination = NewDestination(1000);
  const Destination mirrored = NewDestination(1000);
  H2DMirror mirror = Must(stager.NewMirror(mirrored));
  SurvivesCaptures([&] {
    // More than there are slots: completions have to be learnt on the way.
    for (int32_t i = 0; i < 10; ++i) {
      Must(stager.Copy(destination, Values(1000, i), stream));
      Must(stager.Copy(mirror, Values(1000, i), stream));
      Must(stager.Copy(mirror, Values(1000, i), stream));
    }
  });
  EXPECT_TRUE(Read(destination, stream) == Values(1000, 9));
}

TEST_F(StagerCapture, ALeaseHurtsNone) {
  const Stream stream = NewStream();
  PinnedStager& stager = NewStager();
  const Destination destination = NewDestination(1000);
  SurvivesCaptures([&] {
    SlotLease lease = Must(stager.Acquire(4000));
    device().OnHostAccess(lease.bytes(), HostAccess::kWrite);
    std::ranges::copy(Values(1000, 6), lease.as<int32_t>().begin());
    Must(lease.Submit(destination, stream));
    SlotLease dropped = Must(stager.Acquire(4000));
  });
  EXPECT_TRUE(Read(destination, stream) == Values(1000, 6));
}

TEST_F(StagerCapture, GrowthHurtsNone) {
  uint64_t count = 10'000;
  SurvivesCaptures([&] {
    PinnedStager& stager = NewStager({.slot_bytes = 64, .initial_slots = 1});
    const uint64_t growths = stager.stats().growths;
    Must(device().Trim());  // the cache is empty: growth has to ask the driver
    count += 300'000;
    SlotLease lease = Must(stager.Acquire(count * 4));
    EXPECT_GT(stager.stats().growths, growths);
  });
}

TEST_F(StagerCapture, AWaitForASlotHurtsNone) {
  const Stream held = NewHeldStream();
  PinnedStager& stager = NewStager({.slot_bytes = 400,
                                    .initial_slots = 1,
                                    .max_slots = 1,
                                    .wait_timeout = std::chrono::milliseconds(2)});
  const Destination destination = NewDestination(100);
  Must(stager.Copy(destination, Values(100, 1), held));
  SurvivesCaptures([&] {
    EXPECT_EQ(CodeOf(stager.Copy(destination, Values(100, 2), held)), ErrorCode::kUnavailable);
  });
  Must(harness().Release(held));
  EXPECT_TRUE(Read(destination, held) == Values(100, 1));
}

TEST_F(StagerCapture, ConstructionAndDestructionHurtNone) {
  const Stream stream = NewStream();
  const Destination destination = NewDestination(10'000);
  SurvivesCaptures([&] {
    const std::unique_ptr<PinnedStager> stager =
        Must(PinnedStager::Create(harness().device(), {.slot_bytes = 40'000}));
    Must(stager->Copy(destination, Values(10'000, 8), stream));
  });
  EXPECT_TRUE(Read(destination, stream) == Values(10'000, 8));
}

}  // namespace
}  // namespace h2d::conformance
