// Errors of the device: never taken for a completion, never counted as done, survived by the next
// good call (I5).
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "h2d/device/faulty/faulty_device.h"
#include "h2d/tests/scenarios/support/scenario_test.h"

namespace h2d::scenarios {
namespace {

using Kind = CopyOutcome::Kind;

class Errors : public ScenarioTest {
 protected:
  // Copies on two streams, with and without a mirror, in a ring that is soon full. Calls that fail
  // are made again; answers how many of them failed.
  uint64_t StageSteps(uint32_t steps) {
    const Stream streams[] = {fake().NewStream("A"), fake().NewStream("B")};
    auto mirror = stager().NewMirror(NewDestination("mirrored"));
    EXPECT_TRUE(mirror) << mirror.error().ToString();
    const Destination plain[] = {NewDestination("plain A"), NewDestination("plain B")};
    uint64_t failures = 0;
    for (uint32_t step = 0; step < steps; ++step) {
      const size_t side = step % 2;
      const Values values = ValuesOf(static_cast<int32_t>(step / 3));
      const auto copy_plain = [&](size_t at) {
        return stager().Copy(plain[at], values, streams[at]);
      };
      failures += Insist([&] { return copy_plain(side); });
      failures += Insist([&] {
        auto outcome = stager().Copy(*mirror, values, streams[side]);
        // The mirror's last copy could not be recorded: its stream is used again, as the error
        // says.
        if (!outcome && outcome.error().code == ErrorCode::kUnavailable) {
          static_cast<void>(stager().Copy(*mirror, values, streams[1 - side]));
        }
        return outcome;
      });
      ExpectRead(streams[side], plain[side], values);
      ExpectRead(streams[side], mirror->destination(), values);
      Order(streams[side], streams[1 - side]);
    }
    return failures;
  }

  // Makes a call until it succeeds; a lasting failure fails the test. Answers how often it failed.
  static uint64_t Insist(const std::function<Expected<CopyOutcome>()>& call) {
    for (uint64_t failures = 0; failures < 5; ++failures) {
      const auto outcome = call();
      if (outcome) return failures;
      EXPECT_GT(outcome.error().message.size(), 10u);
      if (failures == 4) ADD_FAILURE() << outcome.error().ToString();
    }
    return 5;
  }
};
INSTANTIATE_TEST_SUITE_P(All, Errors, ::testing::ValuesIn(Settings()), NameOf);

// Scenario 14. A pending copy is no failure, and stays none for the calls that follow.
TEST_P(Errors, PendingWorkIsNeitherAFailureNorLeftAsOne) {
  MakeStager();
  const Stream stream = fake().NewStream("plan");
  ASSERT_TRUE(fake().Hold(stream));
  for (uint32_t i = 0; i < slots(); ++i) {
    ExpectIssued(stager().Copy(NewDestination(), ValuesOf(1), stream));
  }
  for (int i = 0; i < 10; ++i) {
    ExpectKind(stager().TryCopy(NewDestination(), ValuesOf(2), stream), Kind::kWouldBlock);
    EXPECT_FALSE(stager().TryAcquire(bytes()).value());
  }
  EXPECT_EQ(stager().stats().errors, 0u);
  ASSERT_TRUE(fake().Release(stream));
  const Destination to = NewDestination();
  ExpectIssued(stager().Copy(to, ValuesOf(3), stream));
  ExpectRead(stream, to, ValuesOf(3));
}

// Every call of every kind fails once, before it was made (with even seeds) or after: each reader
// still sees its values, no slot is lost, and what was counted is what happened.
TEST_P(Errors, TheCallAfterAnyFailureOfTheDeviceWorks) {
  const bool after = GetParam().seed % 2 != 0;
  for (const CallKind kind : {CallKind::kCopyAsync, CallKind::kRecord, CallKind::kWaitAny,
                              CallKind::kWaitEvent, CallKind::kInspect}) {
    for (uint64_t call = 1; call < 100; call += 1 + call / 2) {
      SCOPED_TRACE(std::string(ToString(kind)) + ", call " + std::to_string(call));
      const auto faulty = FaultyDevice::Create(shared_fake());
      MakeStager(RingOf(slots() + 1), faulty);
      faulty->Inject({.kind = kind,
                      .call = call,
                      .timing = after ? FaultTiming::kAfterCall : FaultTiming::kBeforeCall});
      const uint64_t failures = StageSteps(4);
      const StagerStats stats = stager().stats();
      EXPECT_LE(stats.copies_issued + stats.copies_trimmed,
                faulty->CallCount(CallKind::kCopyAsync));
      EXPECT_GE(stats.errors, failures);
      if (faulty->FaultCount() == 0 || HasFailure()) break;
    }
  }
}

// A slot whose record failed is not free, whatever its old event answers: the ring does not hand it
// out before a later record of its stream completed.
//
//   stream (held)  [copy 0] record fails   [copy 1] record
//   host                    slot 0 is quarantined           ... complete: both are free
TEST_P(Errors, ASlotWhoseRecordFailedComesBackWithALaterRecordOfItsStream) {
  const auto faulty = FaultyDevice::Create(shared_fake());
  MakeStager(RingOf(slots() + 1), faulty);
  const Stream stream = fake().NewStream("plan");
  ASSERT_TRUE(fake().Hold(stream));
  faulty->Inject({.kind = CallKind::kRecord, .call = 1});
  const Destination to = NewDestination();
  ExpectError(stager().Copy(to, ValuesOf(1), stream), ErrorCode::kDevice);
  EXPECT_EQ(stager().stats().slots_quarantined, 1u);
  EXPECT_EQ(stager().stats().copies_issued, 1u) << "it was enqueued, and only its record failed";
  for (uint32_t i = 0; i < slots(); ++i) ExpectIssued(stager().TryCopy(to, ValuesOf(2), stream));
  ExpectKind(stager().TryCopy(to, ValuesOf(3), stream), Kind::kWouldBlock);

  ASSERT_TRUE(fake().Release(stream));
  std::vector<SlotLease> leases;
  for (uint32_t i = 0; i < slots() + 1; ++i) {
    auto lease = stager().Acquire(bytes());
    ASSERT_TRUE(lease) << lease.error().ToString();
    leases.push_back(*std::move(lease));
  }
  EXPECT_EQ(stager().stats().slots_quarantined, 0u);
}

// A mirror is not believed after a copy that failed, be it one that arrived.
TEST_P(Errors, AMirrorKeepsNothingOfACopyThatFailed) {
  for (const FaultTiming timing : {FaultTiming::kBeforeCall, FaultTiming::kAfterCall}) {
    for (const CallKind kind : {CallKind::kCopyAsync, CallKind::kRecord}) {
      const auto faulty = FaultyDevice::Create(shared_fake());
      MakeStager(RingOf(slots() + 1), faulty);
      const Stream stream = fake().NewStream("plan");
      const Destination to = NewDestination();
      auto mirror = stager().NewMirror(to);
      ASSERT_TRUE(mirror);
      ExpectIssued(stager().Copy(*mirror, ValuesOf(1), stream));
      faulty->Inject({.kind = kind, .call = faulty->CallCount(kind) + 1, .timing = timing});
      ExpectError(stager().Copy(*mirror, ValuesOf(2), stream), ErrorCode::kDevice);
      EXPECT_FALSE(mirror->Matches(ValuesOf(1)).value());
      EXPECT_FALSE(mirror->Matches(ValuesOf(2)).value());
      ExpectIssued(stager().Copy(*mirror, ValuesOf(1), stream));
      ExpectRead(stream, to, ValuesOf(1));
    }
  }
}

// From some call on the device is lost. Every call answers that error and nothing else, the copies
// counted stand still, and the end of the stager neither hangs nor gives back what a copy may still
// read.
TEST_P(Errors, ALostDeviceIsAnErrorForEverAndAQuietEnd) {
  for (uint64_t call = 1; call <= 2 * slots(); ++call) {
    const auto faulty = FaultyDevice::Create(shared_fake());
    MakeStager(RingOf(2 * slots()), faulty);
    const Stream stream = fake().NewStream("plan");
    ASSERT_TRUE(fake().Hold(stream));
    auto mirror = stager().NewMirror(NewDestination());
    ASSERT_TRUE(mirror);
    faulty->Inject({.kind = CallKind::kRecord, .call = call, .span = FaultSpan::kSticky});
    uint64_t issued = 0;
    while (stager().TryCopy(NewDestination(), ValuesOf(1), stream)) ++issued;
    EXPECT_EQ(issued, call - 1);
    for (int i = 0; i < 3; ++i) {
      ExpectError(stager().Copy(NewDestination(), ValuesOf(1), stream), ErrorCode::kDevice);
      ExpectError(stager().TryCopy(*mirror, ValuesOf(1), stream), ErrorCode::kDevice);
      ExpectError(mirror->Record(ValuesOf(1), stream), ErrorCode::kDevice);
    }
    // The last was enqueued, too; its record found the device lost.
    EXPECT_EQ(stager().stats().copies_issued, issued + 1);
    EndStager();  // while its copies are in flight
    EXPECT_EQ(fake().hazard_count(), 0u) << "its memory was leaked, not given back";
    ASSERT_TRUE(fake().Release(stream));
  }
}

TEST_P(Errors, APoisonedDeviceEndsAWaitForASlot) {
  const auto mine = MakeFake(GetParam().seed);  // its end is the test's
  auto stager = PinnedStager::Create(mine, RingOf(slots())).value();
  const Stream lost = mine->NewStream("lost");
  const Destination to = Destination::Of<int32_t>(mine->AllocateDevice(bytes()).value(), count());
  for (uint32_t i = 0; i < slots(); ++i) ExpectIssued(stager->Copy(to, ValuesOf(1), lost));
  mine->Poison({ErrorCode::kDevice, 700, "An illegal address was used."});
  for (int i = 0; i < 3; ++i) {
    const auto outcome = stager->Copy(to, ValuesOf(2), lost);
    ExpectError(outcome, ErrorCode::kDevice);
    EXPECT_EQ(outcome.error().device_code, 700);
    ExpectError(stager->Acquire(bytes()), ErrorCode::kDevice);
  }
  stager.reset();
  EXPECT_EQ(mine->hazard_count(), 0u);
}

}  // namespace
}  // namespace h2d::scenarios
