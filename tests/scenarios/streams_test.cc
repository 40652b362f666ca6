// Streams: more of them than slots, stuck ones, destroyed ones, ones whose handle came back.
#include <algorithm>
#include <utility>
#include <vector>

#include "h2d/tests/scenarios/support/scenario_test.h"

namespace h2d::scenarios {
namespace {

using Kind = CopyOutcome::Kind;

class Streams : public ScenarioTest {};
INSTANTIATE_TEST_SUITE_P(All, Streams, ::testing::ValuesIn(Settings()), NameOf);

// Scenario 9.
TEST_P(Streams, MoreStreamsThanSlotsShareTheRing) {
  MakeStager();
  std::vector<Stream> streams;
  for (uint32_t i = 0; i < 3 * slots() + 1; ++i) streams.push_back(fake().NewStream());
  for (int32_t round = 0; round < 3; ++round) {
    for (const Stream& stream : streams) {
      const Destination to = NewDestination();
      ExpectIssued(stager().Copy(to, ValuesOf(round), stream));
      ExpectRead(stream, to, ValuesOf(round));
    }
  }
}

// Scenario 10, the mistake: one event recorded on two streams stands for the last one only, so that
// a slot read on both is taken for free when the fast one is done.
//
//   slow (held)  [copy from the slot]        record e ----(forgotten)
//   fast         [copy from the slot][done]  record e
//   host                                     e complete -> writes the slot
TEST_P(Streams, OneEventForTwoStreamsIsReported) {
  const Stream slow = fake().NewStream("slow");
  const Stream fast = fake().NewStream("fast");
  const PinnedBuffer slot = fake().AllocatePinned(bytes()).value();
  fake().OnHostAccess(slot.bytes(), HostAccess::kWrite);
  ASSERT_TRUE(fake().Hold(slow));
  Event event = fake().CreateEvent().value();
  for (const Stream& stream : {slow, fast}) {
    ASSERT_TRUE(fake().CopyAsync(NewDestination().ptr, slot.bytes(), stream));
    ASSERT_TRUE(fake().Record(event, stream));
  }
  ASSERT_TRUE(fake().Synchronize(event));
  fake().OnHostAccess(slot.bytes(), HostAccess::kWrite);
  ExpectHazards(HazardKind::kWriteToSourceInFlight);
  ASSERT_TRUE(fake().Release(slow));
  ASSERT_TRUE(fake().SynchronizeStream(slow));
}

// Scenario 10, done right: a slot has a copy of its own and an event of its own, so that what
// completes on a fast stream frees nothing that a slow one reads.
TEST_P(Streams, CompletionsOfAFastStreamFreeNothingOfASlowOne) {
  const uint32_t fast_copies = slots();
  MakeStager(RingOf(fast_copies + 2));
  const Stream slow = fake().NewStream("slow");
  const Stream fast = fake().NewStream("fast");
  ASSERT_TRUE(fake().Hold(slow));
  for (int i = 0; i < 2; ++i) {
    const Destination to = NewDestination();
    ExpectIssued(stager().Copy(to, ValuesOf(i), slow));
    ExpectRead(slow, to, ValuesOf(i));
  }
  for (uint32_t i = 0; i < fast_copies; ++i) {
    ExpectIssued(stager().Copy(NewDestination(), ValuesOf(9), fast));
  }
  ASSERT_TRUE(fake().SynchronizeStream(fast));
  std::vector<SlotLease> leases;
  for (uint32_t i = 0; i < fast_copies; ++i) {
    auto lease = stager().Acquire(bytes());
    ASSERT_TRUE(lease) << lease.error().ToString();
    leases.push_back(*std::move(lease));
  }
  EXPECT_FALSE(stager().TryAcquire(bytes()).value()) << "the slow stream's slots are not free";
  leases.clear();
  ASSERT_TRUE(fake().Release(slow));
}

// Scenario 11. The handle of a destroyed stream comes back for the next one: a mirror or a slot
// that knew its stream by handle would believe itself ordered.
//
//   A  [busy 20 ms][copy of the mirror]   destroyed while busy, its handle goes to B
//   B                                    |wait for A's copy|[reader]
TEST_P(Streams, AStreamWithTheHandleOfADestroyedOneIsAnotherStream) {
  MakeStager();
  const Destination to = NewDestination("token ids");
  auto mirror = stager().NewMirror(to);
  ASSERT_TRUE(mirror) << mirror.error().ToString();
  for (int32_t round = 0; round < 4; ++round) {
    const Stream a = fake().NewStream("A");
    Occupy(a);
    ExpectIssued(stager().Copy(*mirror, ValuesOf(round), a));
    ASSERT_TRUE(fake().DestroyStream(a));

    const Stream b = fake().NewStream("B");
    ASSERT_EQ(b.handle(), a.handle());
    ASSERT_NE(b.id(), a.id());
    ExpectKind(stager().Copy(*mirror, ValuesOf(round), b), Kind::kSkipped);
    ExpectRead(b, to, ValuesOf(round));
    ASSERT_TRUE(fake().SynchronizeStream(b));
    ASSERT_TRUE(fake().DestroyStream(b));
  }
}

TEST_P(Streams, SlotsOfADestroyedStreamComeBack) {
  MakeStager();
  for (int32_t round = 0; round < 4; ++round) {
    const Stream stream = fake().NewStream("short-lived");
    Occupy(stream);
    for (uint32_t i = 0; i < slots(); ++i) {
      const Destination to = NewDestination();
      ExpectIssued(stager().Copy(to, ValuesOf(round), stream));
      ExpectRead(stream, to, ValuesOf(round));
    }
    ASSERT_TRUE(fake().DestroyStream(stream));
  }
  EXPECT_LE(stager().stats().slots_in_use_most, slots());
}

// Scenario 12.
//
//   A (held)  [copy 0]........................................................[released]
//   B                  [copy][copy][copy] ... 100 of them, in the slots that are left
TEST_P(Streams, AStuckStreamHoldsBackOnlyItsOwnSlots) {
  const uint32_t stuck = slots();
  MakeStager(RingOf(stuck + 2));
  const Stream a = fake().NewStream("A");
  const Stream b = fake().NewStream("B");
  ASSERT_TRUE(fake().Hold(a));
  for (uint32_t i = 0; i < stuck; ++i) {
    const Destination to = NewDestination();
    ExpectIssued(stager().Copy(to, ValuesOf(-1), a));
    ExpectRead(a, to, ValuesOf(-1));
  }
  const Destination to = NewDestination();
  auto mirror = stager().NewMirror(NewDestination());
  ASSERT_TRUE(mirror);
  for (int32_t i = 0; i < 100; ++i) {
    ExpectIssued(stager().Copy(to, ValuesOf(i), b));
    ExpectIssued(stager().Copy(*mirror, ValuesOf(i), b));
    if (i % 10 != 0) continue;
    ExpectRead(b, to, ValuesOf(i));
    ExpectRead(b, mirror->destination(), ValuesOf(i));
  }
  EXPECT_EQ(stager().stats().errors, 0u);
  ASSERT_TRUE(fake().Release(a));
}

}  // namespace
}  // namespace h2d::scenarios
