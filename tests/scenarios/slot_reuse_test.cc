// Slots: none is written, handed out or given back while a copy may still read it (I1).
#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "h2d/tests/scenarios/support/scenario_test.h"

namespace h2d::scenarios {
namespace {

using Kind = CopyOutcome::Kind;

class SlotReuse : public ScenarioTest {
 protected:
  explicit SlotReuse(FakeOptions options = {}) : ScenarioTest(std::move(options)) {}

  // Takes whatever can be taken without waiting.
  std::vector<SlotLease> TakeAll() {
    std::vector<SlotLease> leases;
    for (;;) {
      auto lease = stager().TryAcquire(bytes());
      EXPECT_TRUE(lease) << lease.error().ToString();
      if (!lease || !*lease) return leases;
      leases.push_back(*std::move(*lease));
    }
  }
};
INSTANTIATE_TEST_SUITE_P(All, SlotReuse, ::testing::ValuesIn(Settings()), NameOf);

// Scenarios 1 and 5.
//
//   stream  [busy 20 ms             ][copy 0][copy 1]...          [copy 2]...
//   host    copy 0, copy 1, ... copy N: no slot, waits ...........|copy N into slot 0
//
// A ring that does not wait overwrites what copy 0 has yet to read: all destinations then hold the
// last values.
TEST_P(SlotReuse, EachDestinationGetsItsOwnValuesBehindABusyStream) {
  MakeStager();
  const Stream stream = fake().NewStream("plan");
  Occupy(stream);
  const auto copies = static_cast<int32_t>(3 * slots());
  for (int32_t i = 0; i < copies; ++i) {
    const Destination to = NewDestination();
    Values values = ValuesOf(i);
    ExpectIssued(stager().Copy(to, values, stream));
    values.assign(values.size(), -1);  // the caller's memory is free as soon as the call returned
    ExpectRead(stream, to, ValuesOf(i));
  }
  // An unkind device may have blocked each call until its copy was complete.
  if (GetParam().seed == 0) {
    EXPECT_EQ(stager().stats().slot_waits, 2 * slots());
  }
}

// Scenario 2. A lease is writable until it is submitted; a store after that is the bug of taking
// the guard too late, and the device reports it, announced or not.
TEST_P(SlotReuse, OnlyAnAcquiredSlotMayBeWritten) {
  MakeStager();
  const Stream stream = fake().NewStream("plan");
  const Destination to = NewDestination();
  auto lease = stager().Acquire(bytes());
  ASSERT_TRUE(lease) << lease.error().ToString();
  const std::span<int32_t> slot = lease->as<int32_t>();
  const Values values = ValuesOf(1);
  std::copy(values.begin(), values.end(), slot.begin());
  ASSERT_TRUE(fake().Hold(stream));
  ExpectIssued(lease->Submit(to, stream));
  EXPECT_FALSE(*lease) << "a submitted lease has nothing to write";
  EXPECT_EQ(fake().hazard_count(), 0u);

  fake().OnHostAccess(std::as_bytes(slot), HostAccess::kWrite);
  ExpectHazards(HazardKind::kWriteToSourceInFlight);
  ASSERT_TRUE(fake().Release(stream));
}

// Without poisoned sources, which would stop the store itself under address sanitizer.
class UnpoisonedSlotReuse : public SlotReuse {
 protected:
  UnpoisonedSlotReuse() : SlotReuse({.poison_sources = false}) {}
};
INSTANTIATE_TEST_SUITE_P(All, UnpoisonedSlotReuse, ::testing::ValuesIn(Settings()), NameOf);

TEST_P(UnpoisonedSlotReuse, AStoreIntoASubmittedSlotIsSeenThoughNobodyAnnouncedIt) {
  MakeStager();
  const Stream stream = fake().NewStream("plan");
  auto lease = stager().Acquire(bytes());
  ASSERT_TRUE(lease) << lease.error().ToString();
  const std::span<int32_t> slot = lease->as<int32_t>();
  std::fill(slot.begin(), slot.end(), 1);
  ASSERT_TRUE(fake().Hold(stream));
  ExpectIssued(lease->Submit(NewDestination(), stream));
  slot.back() = 2;
  ASSERT_TRUE(fake().Release(stream));
  ASSERT_TRUE(fake().SynchronizeStream(stream));
  ExpectHazards(HazardKind::kUnannouncedWrite);
}

// Scenario 3. Work that was queued before the copy is no guard of its slot: the slot stays taken
// until the copy itself completed, however much before it is done.
//
//   stream (held)   kernel  copy 0  kernel  copy 1 ...     completed one by one by the test
//   host                  ^taken  ^free
TEST_P(SlotReuse, ASlotIsTakenUntilItsOwnCopyCompleted) {
  MakeStager();
  const Stream stream = fake().NewStream("plan");
  ASSERT_TRUE(fake().Hold(stream));
  for (uint32_t i = 0; i < slots(); ++i) {
    Occupy(stream);
    ExpectIssued(stager().Copy(NewDestination(), ValuesOf(static_cast<int32_t>(i)), stream));
  }
  std::vector<SlotLease> leases;
  for (uint32_t i = 0; i < slots(); ++i) {
    ASSERT_TRUE(fake().CompleteNext(stream).value());  // the kernel
    EXPECT_TRUE(TakeAll().empty()) << "the copy has not run";
    ASSERT_TRUE(fake().CompleteNext(stream).value());  // the copy, and its record
    auto lease = stager().Acquire(bytes());
    ASSERT_TRUE(lease) << lease.error().ToString();
    leases.push_back(*std::move(lease));
    EXPECT_TRUE(TakeAll().empty()) << "one copy frees one slot";
  }
  ASSERT_TRUE(fake().Release(stream));
}

// Scenario 4. The device is behind by more steps than the ring is deep: who asked not to wait is
// told so, who waits fails at his deadline, and nothing is overwritten meanwhile.
TEST_P(SlotReuse, AFullRingSaysBusyAndNeverOverwrites) {
  StagerOptions options = RingOf(slots());
  options.wait_timeout = std::chrono::milliseconds(3);
  MakeStager(options);
  const Stream stream = fake().NewStream("plan");
  ASSERT_TRUE(fake().Hold(stream));
  for (uint32_t i = 0; i < slots(); ++i) {
    const Destination to = NewDestination();
    ExpectIssued(stager().TryCopy(to, ValuesOf(static_cast<int32_t>(i)), stream));
    ExpectRead(stream, to, ValuesOf(static_cast<int32_t>(i)));
  }
  const Destination to = NewDestination();
  for (int i = 0; i < 5; ++i) {
    ExpectKind(stager().TryCopy(to, ValuesOf(99), stream), Kind::kWouldBlock);
  }
  const auto before = fake().Now();
  ExpectError(stager().Copy(to, ValuesOf(99), stream), ErrorCode::kUnavailable);
  ExpectError(stager().Acquire(bytes()), ErrorCode::kUnavailable);
  EXPECT_GE(fake().Now() - before, 2 * options.wait_timeout);
  EXPECT_EQ(stager().stats().would_block, 5u);
  EXPECT_EQ(stager().stats().copies_issued, slots());

  ASSERT_TRUE(fake().Release(stream));
  ASSERT_TRUE(fake().SynchronizeStream(stream));
  ExpectIssued(stager().Copy(to, ValuesOf(7), stream));
  ExpectRead(stream, to, ValuesOf(7));
}

// A ring that was full once must not go on asking only when it is full: who finds no slot asks the
// device while all others wait.
TEST(SlotReuseOnce, AfterItWasFullARingLooksAheadAgain) {
  constexpr uint32_t kSlots = 512;
  constexpr size_t kBytes = 4096;
  const auto fake = FakeDevice::Create();
  const auto stager =
      PinnedStager::Create(fake,
                           {.slot_bytes = kBytes, .initial_slots = kSlots, .max_slots = kSlots})
          .value();
  const Stream stream = fake->NewStream("plan");
  const Destination to{fake->AllocateDevice(kBytes).value(), kBytes, 1};
  const std::vector<std::byte> values(kBytes, std::byte{7});
  ASSERT_TRUE(fake->Hold(stream));
  for (uint32_t i = 0; i < kSlots; ++i) ASSERT_TRUE(stager->Copy(to, values, stream));
  EXPECT_EQ(stager->stats().slots_in_use, kSlots);
  ASSERT_TRUE(fake->Release(stream));
  ASSERT_TRUE(fake->SynchronizeStream(stream));
  uint32_t most = 0;
  for (uint32_t i = 0; i < 4 * kSlots; ++i) {
    ASSERT_TRUE(stager->Copy(to, values, stream));
    ASSERT_TRUE(fake->SynchronizeStream(stream));
    if (i >= kSlots) most = std::max(most, stager->stats().slots_in_use);
  }
  EXPECT_LE(most, 192U) << "a look each time that 64 more are in use, and each frees half";
}

// Scenario 7. A slot whose copy is on one stream is taken for another stream only after the host
// saw it complete: a wait of the stream would not hold back the host's own stores into the slot.
//
//   A (held)  [copy 0]                     released
//   B                  (nothing: refused)           [copy 1]
TEST_P(SlotReuse, ASlotGoesToAnotherStreamOnlyWhenTheHostSawItComplete) {
  StagerOptions options = RingOf(slots());
  options.wait_timeout = std::chrono::milliseconds(1);
  MakeStager(options);
  const Stream a = fake().NewStream("A");
  const Stream b = fake().NewStream("B");
  ASSERT_TRUE(fake().Hold(a));
  for (uint32_t i = 0; i < slots(); ++i) {
    const Destination to = NewDestination();
    ExpectIssued(stager().Copy(to, ValuesOf(1), a));
    ExpectRead(a, to, ValuesOf(1));
  }
  const Destination to = NewDestination();
  ExpectKind(stager().TryCopy(to, ValuesOf(2), b), Kind::kWouldBlock);
  ExpectError(stager().Copy(to, ValuesOf(2), b), ErrorCode::kUnavailable);
  EXPECT_EQ(fake().counters().stream_waits, 0u);

  ASSERT_TRUE(fake().Release(a));
  ASSERT_TRUE(fake().SynchronizeStream(a));
  ExpectIssued(stager().Copy(to, ValuesOf(2), b));
  ExpectRead(b, to, ValuesOf(2));
}

}  // namespace
}  // namespace h2d::scenarios
