// The stager while a stream is held: slots (I1), stalls (I6), order (I4), end of life (I9).
#include <chrono>
#include <cstdint>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "h2d/device/conformance/stager_fixture.h"

namespace h2d::conformance {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class HeldStager : public StagerFixture {
 protected:
  // A ring of `slots` slots and no more, that waits for a slot no longer than `wait_timeout`.
  PinnedStager& NewRing(uint32_t slots, std::chrono::nanoseconds wait_timeout = seconds(20)) {
    return NewStager({.slot_bytes = 40'000,
                      .initial_slots = slots,
                      .max_slots = slots,
                      .wait_timeout = wait_timeout});
  }
};

// A ring of two, a held stream, six copies to six destinations: each gets its own values, whether
// the caller gives up or waits.
TEST_F(HeldStager, ARingUnderPressureKeepsEachCopysOwnValues) {
  for (const uint64_t count : kPressureCounts) {
    SCOPED_TRACE(count);
    const Stream stream = NewHeldStream();
    PinnedStager& stager = NewRing(2);
    std::vector<Destination> destinations;
    for (int i = 0; i < 6; ++i) destinations.push_back(NewDestination(count));
    for (int32_t i = 0; i < 2; ++i) {
      EXPECT_EQ(
          Must(stager.TryCopy(destinations[static_cast<size_t>(i)], Values(count, i), stream)).kind,
          Kind::kIssued);
    }
    EXPECT_EQ(Must(stager.TryCopy(destinations[2], Values(count, 2), stream)).kind,
              Kind::kWouldBlock);
    Expected<CopyOutcome> last = FailedPrecondition("not copied");
    std::thread waiter([&] {
      for (int32_t i = 2; i < 6; ++i) {
        last = stager.Copy(destinations[static_cast<size_t>(i)], Values(count, i), stream);
        if (!last) return;
      }
    });
    Must(harness().Release(stream));
    waiter.join();
    Must(last);
    for (int32_t i = 0; i < 6; ++i) {
      EXPECT_TRUE(Read(destinations[static_cast<size_t>(i)], stream) == Values(count, i));
    }
  }
}

TEST_F(HeldStager, GrowthWaitsForNothing) {
  for (const uint64_t count : kPressureCounts) {
    SCOPED_TRACE(count);
    const Stream stream = NewHeldStream();
    PinnedStager& stager =
        NewStager({.slot_bytes = count * 4, .initial_slots = 1, .max_slots = 64});
    std::vector<Destination> destinations;
    for (int32_t i = 0; i < 64; ++i) {
      destinations.push_back(NewDestination(count));
      EXPECT_EQ(Must(stager.TryCopy(destinations.back(), Values(count, i), stream)).kind,
                Kind::kIssued);
    }
    const Event behind = RecordOn(stream);
    EXPECT_TRUE(IsPending(behind));
    Must(harness().Release(stream));
    for (int32_t i = 0; i < 64; ++i) {
      EXPECT_TRUE(Read(destinations[static_cast<size_t>(i)], stream) == Values(count, i));
    }
  }
}

TEST_F(HeldStager, AStuckStreamHoldsBackOnlyItsOwnSlots) {
  const Stream stuck = NewHeldStream();
  const Stream free = NewStream();
  PinnedStager& stager = NewRing(4);
  const Destination on_stuck = NewDestination(10'000);
  const Destination on_free = NewDestination(10'000);
  Must(stager.Copy(on_stuck, Values(10'000, 1), stuck));
  Must(stager.Copy(on_stuck, Values(10'000, 2), stuck));
  for (int32_t i = 0; i < 100; ++i) Must(stager.Copy(on_free, Values(10'000, i), free));
  EXPECT_TRUE(Read(on_free, free) == Values(10'000, 99));
  Must(harness().Release(stuck));
  EXPECT_TRUE(Read(on_stuck, stuck) == Values(10'000, 2));
}

TEST_F(HeldStager, AWaiterTakesTheFirstSlotOfAnyStream) {
  const Stream slow = NewHeldStream();
  const Stream fast = NewHeldStream();
  PinnedStager& stager = NewRing(2);
  const Destination a = NewDestination(100);
  const Destination b = NewDestination(100);
  const Destination c = NewDestination(100);
  Must(stager.Copy(a, Values(100, 1), slow));
  Must(stager.Copy(b, Values(100, 2), fast));
  const Stream third = NewStream();
  Expected<CopyOutcome> copied = FailedPrecondition("not copied");
  std::thread waiter([&] { copied = stager.Copy(c, Values(100, 3), third); });
  Must(harness().Release(fast));
  waiter.join();
  Must(copied);
  EXPECT_TRUE(Read(c, third) == Values(100, 3));
  EXPECT_TRUE(IsPending(RecordOn(slow)));
  Must(harness().Release(slow));
}

TEST_F(HeldStager, ASlotThatIsHandedBackWakesAWaiter) {
  const Stream held = NewHeldStream();
  PinnedStager& stager = NewRing(2);
  Must(stager.Copy(NewDestination(100), Values(100, 1), held));
  std::optional<SlotLease> lease = Must(stager.Acquire(400));
  Expected<SlotLease> waited_for = FailedPrecondition("not acquired");
  std::thread waiter([&] { waited_for = stager.Acquire(400); });
  lease.reset();
  waiter.join();
  EXPECT_TRUE(Must(std::move(waited_for)));
  Must(harness().Release(held));
}

TEST_F(HeldStager, AWaitForASlotEndsAtItsTimeout) {
  const Stream held = NewHeldStream();
  PinnedStager& stager = NewRing(1, milliseconds(5));
  const Destination destination = NewDestination(100);
  Must(stager.Copy(destination, Values(100, 1), held));
  EXPECT_EQ(CodeOf(stager.Copy(NewDestination(100), Values(100, 2), held)),
            ErrorCode::kUnavailable);
  Must(harness().Release(held));
  EXPECT_TRUE(Read(destination, held) == Values(100, 1));
}

// The device is busy with somebody else's work for as long as it likes.
TEST_F(HeldStager, DestructionWaitsForItsOwnCopiesOnly) {
  const Stream foreign = NewHeldStream();
  const Event on_foreign = CopyOn(foreign);
  const Stream stream = NewStream();
  const Destination destination = NewDestination(10'000);
  {
    const std::unique_ptr<PinnedStager> stager =
        Must(PinnedStager::Create(harness().device(), {.slot_bytes = 40'000}));
    Must(stager->Copy(destination, Values(10'000, 1), stream));
  }
  EXPECT_TRUE(IsPending(on_foreign));
  EXPECT_TRUE(Read(destination, stream) == Values(10'000, 1));
  Must(harness().Release(foreign));
  Await(on_foreign);
}

// held:  [hold ... copy(values)]
// other:                          copy(values): skipped, but ordered behind it
TEST_F(HeldStager, ASkipOnAnotherStreamWaitsForTheMirrorsLastCopy) {
  const Stream held = NewHeldStream();
  const Stream other = NewStream();
  PinnedStager& stager = NewRing(1);
  const Destination destination = NewDestination(10'000);
  H2DMirror mirror = Must(stager.NewMirror(destination));
  Must(stager.Copy(mirror, Values(10'000, 1), held));
  EXPECT_EQ(Must(stager.TryCopy(mirror, Values(10'000, 1), other)).kind, Kind::kSkipped);
  const Event behind = RecordOn(other);
  RunAround();
  EXPECT_TRUE(IsPending(behind));
  Must(harness().Release(held));
  EXPECT_TRUE(Read(destination, other) == Values(10'000, 1));
}

TEST_F(HeldStager, ATrimmedCopyOnAnotherStreamLeavesTheWholeImage) {
  const Stream held = NewHeldStream();
  const Stream other = NewStream();
  PinnedStager& stager = NewRing(2);
  const Destination destination = NewDestination(10'000);
  H2DMirror mirror = Must(stager.NewMirror(destination));
  std::vector<int32_t> values = Values(10'000, 1);
  Must(stager.Copy(mirror, values, held));
  values[9'000] = -5;
  EXPECT_EQ(Must(stager.Copy(mirror, values, other)).kind, Kind::kTrimmed);
  Must(harness().Release(held));
  EXPECT_TRUE(Read(destination, other) == values);
}

TEST_F(HeldStager, ForgettingTheContentKeepsTheOrder) {
  const Stream held = NewHeldStream();
  const Stream other = NewStream();
  PinnedStager& stager = NewRing(2);
  const Destination destination = NewDestination(10'000);
  H2DMirror mirror = Must(stager.NewMirror(destination));
  Must(stager.Copy(mirror, Values(10'000, 1), held));
  mirror.Invalidate();
  EXPECT_EQ(Must(stager.Copy(mirror, Values(10'000, 2), other)).kind, Kind::kIssued);
  const Event behind = RecordOn(other);
  RunAround();
  EXPECT_TRUE(IsPending(behind));
  Must(harness().Release(held));
  EXPECT_TRUE(Read(destination, other) == Values(10'000, 2));
}

}  // namespace
}  // namespace h2d::conformance
