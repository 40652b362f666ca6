// Stream capture: refused before anything is recorded, and never disturbed (I7).
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "h2d/tests/scenarios/support/scenario_test.h"

namespace h2d::scenarios {
namespace {

using Kind = CopyOutcome::Kind;

constexpr std::array<CaptureMode, 3> kModes = {CaptureMode::kGlobal, CaptureMode::kThreadLocal,
                                               CaptureMode::kRelaxed};

class Capture : public ScenarioTest {
 protected:
  H2DMirror NewMirror() { return stager().NewMirror(NewDestination()).value(); }
};
INSTANTIATE_TEST_SUITE_P(All, Capture, ::testing::ValuesIn(Settings()), NameOf);

// Scenario 16, the mistake: a captured copy keeps its host address and reads it again at every
// replay, when the slot has long been somebody else's.
TEST_P(Capture, ACopyRecordedIntoAGraphReadsWhatItsSourceHoldsAtTheReplay) {
  const Stream stream = fake().NewStream("graph");
  const Destination to = NewDestination();
  const PinnedBuffer slot = fake().AllocatePinned(bytes()).value();
  const std::span<int32_t> values(reinterpret_cast<int32_t*>(slot.bytes().data()), count());
  fake().OnHostAccess(slot.bytes(), HostAccess::kWrite);
  std::fill(values.begin(), values.end(), 11);
  ASSERT_TRUE(fake().BeginCapture(stream));
  ASSERT_TRUE(fake().CopyAsync(to.ptr, slot.bytes(), stream));
  const FakeGraph graph = fake().EndCapture(stream).value();

  fake().OnHostAccess(slot.bytes(), HostAccess::kWrite);
  std::fill(values.begin(), values.end(), 22);
  ASSERT_TRUE(fake().LaunchGraph(graph, stream));
  ExpectRead(stream, to, Values(count(), 22));
  ASSERT_TRUE(fake().SynchronizeStream(stream));
}

// Scenario 16. Every call on a capturing stream is refused, mirror hits too, and the graph holds
// nothing of it; what was refused works when the capture is over.
TEST_P(Capture, ACapturingStreamIsRefusedBeforeAnythingIsRecorded) {
  MakeStager(RingOf(slots() + 1));
  const Stream stream = fake().NewStream("graph");
  const Destination to = NewDestination();
  H2DMirror fresh = NewMirror();
  H2DMirror known = NewMirror();
  ExpectIssued(stager().Copy(known, ValuesOf(1), stream));
  Values changed = ValuesOf(1);
  changed.back() ^= 1;

  for (const CaptureMode mode : kModes) {
    auto lease = stager().Acquire(bytes());
    ASSERT_TRUE(lease) << lease.error().ToString();
    std::fill(lease->as<int32_t>().begin(), lease->as<int32_t>().end(), 5);
    ASSERT_TRUE(fake().BeginCapture(stream, mode));
    const auto refused = ErrorCode::kFailedPrecondition;
    ExpectError(stager().Copy(to, ValuesOf(2), stream), refused);
    ExpectError(stager().TryCopy(to, ValuesOf(2), stream), refused);
    ExpectError(stager().Copy(fresh, ValuesOf(2), stream), refused);
    ExpectError(stager().Copy(known, ValuesOf(1), stream), refused);
    ExpectError(stager().Copy(known, changed, stream), refused);
    ExpectError(stager().Copy(known, Values{}, stream, 3), refused);
    ExpectError(lease->Submit(to, stream), refused);
    ExpectError(lease->Submit(known, stream), refused);
    const auto graph = fake().EndCapture(stream);
    ASSERT_TRUE(graph) << graph.error().ToString();
    EXPECT_EQ(graph->operations(), 0u);

    ASSERT_TRUE(*lease) << "a refused lease may be submitted again";
    ExpectIssued(lease->Submit(to, stream));
    ExpectRead(stream, to, Values(count(), 5));
    ExpectKind(stager().Copy(known, ValuesOf(1), stream), Kind::kSkipped);
    ExpectRead(stream, known.destination(), ValuesOf(1));
  }
}

TEST_P(Capture, RecordingAMirrorOnACapturingStreamIsRefusedAndForgets) {
  MakeStager();
  const Stream stream = fake().NewStream("graph");
  H2DMirror mirror = NewMirror();
  ExpectIssued(stager().Copy(mirror, ValuesOf(1), stream));
  ASSERT_TRUE(fake().BeginCapture(stream));
  ExpectError(mirror.Record(ValuesOf(1), stream), ErrorCode::kFailedPrecondition);
  const auto graph = fake().EndCapture(stream);
  ASSERT_TRUE(graph) << graph.error().ToString();
  EXPECT_EQ(graph->operations(), 0u);
  EXPECT_FALSE(mirror.Matches(ValuesOf(1)).value());
  ExpectIssued(stager().Copy(mirror, ValuesOf(1), stream));
}

// A stream joins a capture by waiting for an event of it, and is refused from then on.
TEST_P(Capture, AStreamThatJoinedACaptureIsRefusedUntilItIsOver) {
  MakeStager();
  const Stream graph = fake().NewStream("graph");
  const Stream plan = fake().NewStream("plan");
  const Destination to = NewDestination();
  ASSERT_TRUE(fake().BeginCapture(graph));
  Order(graph, plan);
  ExpectError(stager().Copy(to, ValuesOf(1), plan), ErrorCode::kFailedPrecondition);
  Order(plan, graph);
  ASSERT_TRUE(fake().EndCapture(graph));
  ExpectIssued(stager().Copy(to, ValuesOf(2), plan));
  ExpectRead(plan, to, ValuesOf(2));
}

// Scenario 17. While a stream is captured, in any mode, a stager works on others: it asks its
// events, waits for slots, grows, is made and destroyed, and the capture ends well.
//
//   graph  |begin|          kernel          |end|
//   plan         [copy][copy] ... full: sweeps, waits ... [copy]
TEST_P(Capture, NoCallOnAnotherStreamDisturbsACapture) {
  for (const CaptureMode mode : kModes) {
    SCOPED_TRACE("mode " + std::to_string(static_cast<int>(mode)));
    StagerOptions options = RingOf(slots() + 2);
    options.initial_slots = 1;
    MakeStager(options);
    const Stream graph = fake().NewStream("graph");
    const Stream plan = fake().NewStream("plan");
    const Stream other = fake().NewStream("other");
    ASSERT_TRUE(fake().BeginCapture(graph, mode));
    {
      auto made = PinnedStager::Create(shared_fake(), options);
      ASSERT_TRUE(made) << made.error().ToString();
      ExpectIssued((*made)->Copy(NewDestination(), ValuesOf(3), other));
    }
    ASSERT_TRUE(fake().Hold(plan));
    for (uint32_t i = 0; i < options.max_slots; ++i) {
      ExpectIssued(stager().TryCopy(NewDestination(), ValuesOf(4), plan));
    }
    EXPECT_GT(stager().stats().growths, 0u);
    ExpectKind(stager().TryCopy(NewDestination(), ValuesOf(4), plan), Kind::kWouldBlock);
    ASSERT_TRUE(fake().Release(plan));

    H2DMirror mirror = NewMirror();
    for (int32_t i = 0; i < static_cast<int32_t>(3 * slots()); ++i) {
      ExpectIssued(stager().Copy(mirror, ValuesOf(i), plan));
      ExpectKind(stager().Copy(mirror, ValuesOf(i), other), Kind::kSkipped);
      Order(other, plan);
    }
    ExpectRead(plan, mirror.destination(), ValuesOf(static_cast<int32_t>(3 * slots()) - 1));
    const auto captured = fake().EndCapture(graph);
    ASSERT_TRUE(captured) << captured.error().ToString();
    EXPECT_EQ(captured->operations(), 0u);
  }
}

}  // namespace
}  // namespace h2d::scenarios
