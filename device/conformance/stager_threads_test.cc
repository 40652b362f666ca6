// Many threads and one stager (I8).
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "h2d/device/conformance/stager_fixture.h"

namespace h2d::conformance {
namespace {

class StagerThreads : public StagerFixture {
 protected:
  // Runs `work(i)` on `count` threads at once; the first error of any fails the test.
  template <class Work>
  void OnThreads(int count, const Work& work) {
    std::vector<Expected<void>> results(static_cast<size_t>(count));
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) {
      threads.emplace_back([&, i] { results[static_cast<size_t>(i)] = work(i); });
    }
    for (std::thread& thread : threads) thread.join();
    for (const Expected<void>& result : results) Must(result);
  }
};

constexpr int kThreads = 4;
constexpr int32_t kCopies = 200;

// `work` copies with ever changing values and sizes, and remembers the last.
struct Lane {
  Stream stream;
  Destination destination;
};

Expected<void> CopyManyTimes(PinnedStager& stager, const Lane& lane, int32_t thread) {
  for (int32_t i = 0; i < kCopies; ++i) {
    const int32_t seed = thread * 1000 + i;
    Expected<CopyOutcome> copied =
        stager.Copy(lane.destination, Values(16, seed), lane.stream, seed);
    if (!copied) return ErrorOf(copied);
    if (i % 10 != 9) continue;
    copied = stager.Copy(lane.destination, Values(lane.destination.count, seed), lane.stream);
    if (!copied) return ErrorOf(copied);
  }
  return {};
}

TEST_F(StagerThreads, EachOnItsOwnStreamBringsItsOwnValues) {
  PinnedStager& stager = NewStager({.slot_bytes = 40'000, .initial_slots = 2, .max_slots = 6});
  std::vector<Lane> lanes;
  for (int i = 0; i < kThreads; ++i) lanes.push_back({NewStream(), NewDestination(10'000)});
  OnThreads(kThreads,
            [&](int i) { return CopyManyTimes(stager, lanes[static_cast<size_t>(i)], i); });
  for (int32_t i = 0; i < kThreads; ++i) {
    const Lane& lane = lanes[static_cast<size_t>(i)];
    EXPECT_TRUE(Read(lane.destination, lane.stream) == Values(10'000, i * 1000 + kCopies - 1));
  }
}

TEST_F(StagerThreads, AllOnOneStreamBringTheirOwnValues) {
  PinnedStager& stager = NewStager({.slot_bytes = 40'000, .initial_slots = 2, .max_slots = 6});
  const Stream stream = NewStream();
  std::vector<Lane> lanes;
  for (int i = 0; i < kThreads; ++i) lanes.push_back({stream, NewDestination(10'000)});
  OnThreads(kThreads,
            [&](int i) { return CopyManyTimes(stager, lanes[static_cast<size_t>(i)], i); });
  for (int32_t i = 0; i < kThreads; ++i) {
    const Lane& lane = lanes[static_cast<size_t>(i)];
    EXPECT_TRUE(Read(lane.destination, lane.stream) == Values(10'000, i * 1000 + kCopies - 1));
  }
}

TEST_F(StagerThreads, EachOnItsPerThreadStreamBringsItsOwnValues) {
  PinnedStager& stager = NewStager({.slot_bytes = 40'000, .initial_slots = 2, .max_slots = 6});
  std::vector<Destination> destinations;
  for (int i = 0; i < kThreads; ++i) destinations.push_back(NewDestination(10'000));
  std::vector<std::vector<std::byte>> read(kThreads);
  OnThreads(kThreads, [&](int i) -> Expected<void> {
    const Lane lane = {harness().PerThreadStream(), destinations[static_cast<size_t>(i)]};
    if (Expected<void> ok = CopyManyTimes(stager, lane, i); !ok) return ok;
    Expected<std::vector<std::byte>> bytes =
        harness().ReadBack(lane.destination.ptr, 40'000, lane.stream);
    if (!bytes) return ErrorOf(bytes);
    read[static_cast<size_t>(i)] = *std::move(bytes);
    return {};
  });
  for (int32_t i = 0; i < kThreads; ++i) {
    const std::vector<int32_t> expected = Values(10'000, i * 1000 + kCopies - 1);
    EXPECT_TRUE(
        std::ranges::equal(read[static_cast<size_t>(i)], std::as_bytes(std::span(expected))));
  }
}

// Two threads bring two images through one mirror, each on its own stream: whatever the order, one
// of them is left, whole, and the mirror knows which.
TEST_F(StagerThreads, CallsOnOneMirrorAreOrderedAcrossStreams) {
  PinnedStager& stager = NewStager({.slot_bytes = 4000, .initial_slots = 2, .max_slots = 4});
  const Destination destination = NewDestination(1000);
  H2DMirror mirror = Must(stager.NewMirror(destination));
  const std::vector<Stream> streams = {NewStream(), NewStream()};
  const std::vector<std::vector<int32_t>> images = {Values(1000, 1), Values(1000, 2)};
  OnThreads(2, [&](int i) -> Expected<void> {
    for (int32_t k = 0; k < kCopies; ++k) {
      Expected<CopyOutcome> copied =
          stager.Copy(mirror, images[static_cast<size_t>(i)], streams[static_cast<size_t>(i)]);
      if (!copied) return ErrorOf(copied);
    }
    return {};
  });
  for (const Stream& stream : streams) Await(RecordOn(stream));
  const std::vector<int32_t> left = Read(destination, streams[0]);
  EXPECT_TRUE(left == images[0] || left == images[1]);
  EXPECT_TRUE(Must(mirror.Matches(left)));
}

class StagerTwoDevices : public StagerThreads {
 protected:
  void SetUp() override {
    StagerThreads::SetUp();
    if (harness().Second() == nullptr) GTEST_SKIP() << "there is no second device";
  }

  // A stager and a lane on the first device, or on the second.
  struct Side {
    std::unique_ptr<PinnedStager> stager;
    Lane lane;
  };
  Side NewSide(Harness& side) {
    return {Must(PinnedStager::Create(side.device(), {.initial_slots = 2, .max_slots = 4})),
            {Must(side.NewStream(StreamFlavor::kNonBlocking)),
             Destination::Of<int32_t>(Must(side.AllocateDevice(40'000)), 10'000)}};
  }
  void CheckLast(Harness& side, const Lane& lane, int32_t thread) {
    const std::vector<std::byte> bytes =
        Must(side.ReadBack(lane.destination.ptr, 40'000, lane.stream));
    const std::vector<int32_t> expected = Values(10'000, thread * 1000 + kCopies - 1);
    EXPECT_TRUE(std::ranges::equal(bytes, std::as_bytes(std::span(expected))));
  }
};

TEST_F(StagerTwoDevices, OneThreadServesBoth) {
  const Side first = NewSide(harness());
  const Side other = NewSide(second());
  for (int round = 0; round < 3; ++round) {
    Must(CopyManyTimes(*first.stager, first.lane, 1));
    Must(CopyManyTimes(*other.stager, other.lane, 2));
  }
  CheckLast(harness(), first.lane, 1);
  CheckLast(second(), other.lane, 2);
}

TEST_F(StagerTwoDevices, SeveralThreadsServeBoth) {
  const Side first = NewSide(harness());
  const Side other = NewSide(second());
  OnThreads(2, [&](int i) {
    const Side& side = i == 0 ? first : other;
    return CopyManyTimes(*side.stager, side.lane, i);
  });
  CheckLast(harness(), first.lane, 0);
  CheckLast(second(), other.lane, 1);
}

TEST_F(StagerTwoDevices, AStreamOfTheOtherDeviceIsRefused) {
  PinnedStager& stager = NewStager();
  const Stream foreign = Must(second().NewStream(StreamFlavor::kNonBlocking));
  const Destination destination = NewDestination(10);
  EXPECT_EQ(CodeOf(stager.Copy(destination, Values(10, 1), foreign)), ErrorCode::kInvalidArgument);
  EXPECT_EQ(stager.stats().bytes_sent, 0U);
}

}  // namespace
}  // namespace h2d::conformance
