// The stager on the device under test: content (I3), skips (I4), refusals (I5), leases.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "h2d/device/conformance/stager_fixture.h"

namespace h2d::conformance {
namespace {

using Stager = StagerFixture;

TEST_F(Stager, ValuesThenPaddingArriveAndNothingElseIsTouched) {
  const Stream stream = NewStream();
  PinnedStager& stager = NewStager({.slot_bytes = 256});
  for (const uint64_t count : {1, 3, 16, 10'000}) {
    SCOPED_TRACE(count);
    const Destination whole = NewDestination(count + 2);
    Must(harness().Fill(whole.ptr, std::byte{0}, whole.count * 4, stream));
    const auto inner = Destination::Of<int32_t>(whole.ptr + 4, count);
    const std::vector<int32_t> values = Values((count + 1) / 2, 5);
    EXPECT_EQ(Must(stager.Copy(inner, values, stream, -1)).kind, Kind::kIssued);
    std::vector<int32_t> expected(count + 2, -1);
    expected.front() = expected.back() = 0;
    std::ranges::copy(values, expected.begin() + 1);
    EXPECT_TRUE(Read(whole, stream) == expected);
  }
}

TEST_F(Stager, WithoutPaddingOnlyTheValuesRowsChange) {
  const Stream stream = NewStream();
  PinnedStager& stager = NewStager();
  const Destination destination = NewDestination(100);
  Must(stager.Copy(destination, Values(100, 1), stream));
  Must(stager.Copy(destination, Values(40, 2), stream));
  std::vector<int32_t> expected = Values(100, 1);
  std::ranges::copy(Values(40, 2), expected.begin());
  EXPECT_TRUE(Read(destination, stream) == expected);
}

TEST_F(Stager, NoValuesDoNothingWithoutPaddingAndPadWithIt) {
  const Stream stream = NewStream();
  PinnedStager& stager = NewStager();
  const Destination destination = NewDestination(10);
  const std::vector<int32_t> none;
  EXPECT_EQ(Must(stager.Copy(destination, none, stream)).kind, Kind::kSkipped);
  EXPECT_TRUE(Read(destination, stream) == std::vector<int32_t>(10, 0));
  Must(stager.Copy(destination, none, stream, 7));
  EXPECT_TRUE(Read(destination, stream) == std::vector<int32_t>(10, 7));
}

TEST_F(Stager, TheCallersMemoryIsFreeWhenTheCallReturns) {
  const Stream stream = NewStream();
  PinnedStager& stager = NewStager({.slot_bytes = 64, .initial_slots = 2, .max_slots = 2});
  for (const uint64_t count : kPressureCounts) {
    std::vector<Destination> destinations;
    std::vector<int32_t> values(count);
    for (int32_t i = 0; i < 20; ++i) {
      destinations.push_back(NewDestination(count));
      values = Values(count, i);
      Must(stager.Copy(destinations.back(), values, stream));
      std::ranges::fill(values, -1);
    }
    for (int32_t i = 0; i < 20; ++i) {
      EXPECT_TRUE(Read(destinations[static_cast<size_t>(i)], stream) == Values(count, i));
    }
  }
}

TEST_F(Stager, TheDefaultStreamsAreServed) {
  PinnedStager& stager = NewStager();
  for (const Stream& stream : {harness().LegacyStream(), harness().PerThreadStream()}) {
    const Destination destination = NewDestination(1000);
    H2DMirror mirror = Must(stager.NewMirror(destination));
    Must(stager.Copy(mirror, Values(1000, 3), stream));
    EXPECT_EQ(Must(stager.Copy(mirror, Values(1000, 3), stream)).kind, Kind::kSkipped);
    EXPECT_TRUE(Read(destination, stream) == Values(1000, 3));
  }
}

TEST_F(Stager, AMirrorSkipsWhatIsThereAndTrimsToWhatDiffers) {
  const Stream stream = NewStream();
  PinnedStager& stager = NewStager();
  const Destination destination = NewDestination(1000);
  H2DMirror mirror = Must(stager.NewMirror(destination));
  std::vector<int32_t> values = Values(900, 1);
  EXPECT_EQ(Must(stager.Copy(mirror, values, stream, -1)).kind, Kind::kIssued);
  EXPECT_EQ(Must(stager.Copy(mirror, values, stream, -1)).kind, Kind::kSkipped);
  values[500] = 42;
  const CopyOutcome trimmed = Must(stager.Copy(mirror, values, stream, -1));
  EXPECT_EQ(trimmed.kind, Kind::kTrimmed);
  EXPECT_EQ(trimmed.bytes_sent, 4U);
  std::vector<int32_t> expected = values;
  expected.resize(1000, -1);
  EXPECT_TRUE(Read(destination, stream) == expected);
}

TEST_F(Stager, AfterForeignWorkAMirrorIsInvalidatedAndCopiesInFull) {
  const Stream stream = NewStream();
  PinnedStager& stager = NewStager();
  const Destination destination = NewDestination(100);
  H2DMirror mirror = Must(stager.NewMirror(destination));
  Must(stager.Copy(mirror, Values(100, 1), stream));
  Must(harness().Fill(destination.ptr, std::byte{1}, 400, stream));
  mirror.Invalidate();
  EXPECT_EQ(Must(stager.Copy(mirror, Values(100, 1), stream)).kind, Kind::kIssued);
  EXPECT_TRUE(Read(destination, stream) == Values(100, 1));

  Must(harness().Fill(destination.ptr, std::byte{1}, 400, stream));
  const std::vector<int32_t> filled(100, 0x01010101);
  Must(mirror.Record(filled, stream));
  EXPECT_EQ(Must(stager.Copy(mirror, filled, stream)).kind, Kind::kSkipped);
  EXPECT_TRUE(Read(destination, stream) == filled);
}

TEST_F(Stager, APlainCopyIntoMirroredBytesMakesTheMirrorForget) {
  const Stream stream = NewStream();
  PinnedStager& stager = NewStager();
  const Destination destination = NewDestination(100);
  H2DMirror mirror = Must(stager.NewMirror(destination));
  Must(stager.Copy(mirror, Values(100, 1), stream));
  Must(stager.Copy(Destination::Of<int32_t>(destination.ptr + 40, 10), Values(10, 9), stream));
  EXPECT_NE(Must(stager.Copy(mirror, Values(100, 1), stream)).kind, Kind::kSkipped);
  EXPECT_TRUE(Read(destination, stream) == Values(100, 1));
}

TEST_F(Stager, ALeaseIsWrittenInPlaceThenSubmittedOrDropped) {
  const Stream stream = NewStream();
  PinnedStager& stager = NewStager({.max_slots = 8});
  const Destination destination = NewDestination(1000);
  for (int32_t i = 0; i < 20; ++i) {
    SlotLease lease = Must(stager.Acquire(4000));
    // Its owner writes the slot; a stager announces only its own writes.
    device().OnHostAccess(lease.bytes(), HostAccess::kWrite);
    std::ranges::copy(Values(1000, i), lease.as<int32_t>().begin());
    if (i % 2 == 0) continue;  // dropped
    Must(lease.Submit(destination, stream));
    EXPECT_FALSE(lease);
  }
  EXPECT_TRUE(Read(destination, stream) == Values(1000, 19));
}

TEST_F(Stager, RefusalsIssueNothing) {
  const Stream stream = NewStream();
  PinnedStager& stager = NewStager();
  const Destination destination = NewDestination(10);
  const Destination null = Destination::Of<int32_t>(DevicePtr(), 10);
  H2DMirror foreign = Must(NewStager().NewMirror(destination));
  EXPECT_EQ(CodeOf(stager.Copy(destination, Values(11, 1), stream)), ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(stager.Copy(null, Values(10, 1), stream)), ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(stager.Copy(foreign, Values(10, 1), stream)), ErrorCode::kInvalidArgument);
  const std::vector<int64_t> wide(10);
  EXPECT_EQ(CodeOf(stager.Copy(destination, wide, stream)), ErrorCode::kInvalidArgument);
  EXPECT_EQ(stager.stats().bytes_sent, 0U);
  EXPECT_TRUE(Read(destination, stream) == std::vector<int32_t>(10, 0));
}

}  // namespace
}  // namespace h2d::conformance
