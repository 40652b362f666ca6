// The end of a stager: it waits for its own copies and for nothing else, and is quiet whatever
// became of the device (I9).
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include "h2d/device/faulty/faulty_device.h"
#include "h2d/tests/scenarios/support/scenario_test.h"

namespace h2d::scenarios {
namespace {

class EndOfLife : public ScenarioTest {};
INSTANTIATE_TEST_SUITE_P(All, EndOfLife, ::testing::ValuesIn(Settings()), NameOf);

//   own     [busy 20 ms][copy 0][copy 1]
//   others  (held by somebody else) ......................................
//   host                         stager ends: waits ....|memory is handed back
TEST_P(EndOfLife, AnEndWaitsForItsOwnCopiesAndForNothingElse) {
  MakeStager();
  const Stream own = fake().NewStream("own");
  const Stream others = fake().NewStream("others");
  ASSERT_TRUE(fake().Hold(others));
  Occupy(others);
  Occupy(own);
  for (uint32_t i = 0; i < slots(); ++i) {
    const Destination to = NewDestination();
    ExpectIssued(stager().Copy(to, ValuesOf(1), own));
    ExpectRead(own, to, ValuesOf(1));
  }
  EndStager();
  const FakeCounters counters = fake().counters();
  EXPECT_GE(counters.pinned_cached_bytes, slots() * bytes());
  EXPECT_EQ(fake().hazard_count(), 0u);
  ASSERT_TRUE(fake().Release(others));
}

TEST_P(EndOfLife, LeasesMayOutliveTheirStager) {
  MakeStager();
  auto submitted = stager().Acquire(bytes()).value();
  std::optional<SlotLease> kept;
  if (slots() > 1) kept.emplace(stager().Acquire(bytes()).value());
  const Stream stream = fake().NewStream("plan");
  Occupy(stream);
  ExpectIssued(submitted.Submit(NewDestination(), stream));
  EndStager();
  if (!kept) return;
  fake().OnHostAccess(kept->bytes(), HostAccess::kWrite);
  std::fill(kept->as<int32_t>().begin(), kept->as<int32_t>().end(), 1);
  ExpectError(kept->Submit(NewDestination(), stream), ErrorCode::kFailedPrecondition);
}

TEST_P(EndOfLife, AStagerHoldsItsDeviceAlive) {
  auto device = MakeFake(GetParam().seed);
  const std::weak_ptr<FakeDevice> watched = device;
  const Destination to = Destination::Of<int32_t>(device->AllocateDevice(bytes()).value(), count());
  const Stream stream = device->NewStream();
  auto stager = PinnedStager::Create(std::move(device), RingOf(slots())).value();
  ExpectIssued(stager->Copy(to, ValuesOf(1), stream));
  EXPECT_FALSE(watched.expired());
  stager.reset();
  EXPECT_TRUE(watched.expired());
}

// A device does not survive a fork: in the child every call is refused and every destructor does
// nothing, while the parent goes on.
TEST_P(EndOfLife, InAForkedChildCallsFailAndDestructorsDoNothing) {
  auto stager = PinnedStager::Create(shared_fake(), RingOf(slots() + 1)).value();
  const Stream stream = fake().NewStream("plan");
  const Destination to = NewDestination();
  std::optional<H2DMirror> mirror(stager->NewMirror(NewDestination()).value());
  std::optional<SlotLease> lease(stager->Acquire(bytes()).value());
  ExpectIssued(stager->Copy(*mirror, ValuesOf(1), stream));

  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto refused = [](const auto& result) {
      return !result && result.error().code == ErrorCode::kFailedPrecondition;
    };
    const bool all_refused =
        refused(stager->Copy(to, ValuesOf(1), stream)) &&
        refused(stager->TryCopy(*mirror, ValuesOf(1), stream)) &&
        refused(stager->Acquire(bytes())) && refused(stager->NewMirror(to)) &&
        refused(mirror->Matches(ValuesOf(1))) && refused(mirror->Record(ValuesOf(1), stream)) &&
        refused(lease->Submit(to, stream)) && refused(PinnedStager::Create(shared_fake()));
    mirror->Invalidate();
    lease.reset();
    mirror.reset();
    stager.reset();
    _exit(all_refused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;

  ExpectIssued(stager->Copy(to, ValuesOf(2), stream));
  ExpectRead(stream, to, ValuesOf(2));
  std::fill(lease->as<int32_t>().begin(), lease->as<int32_t>().end(), 3);
  ExpectIssued(lease->Submit(*mirror, stream));
  ExpectRead(stream, mirror->destination(), Values(count(), 3));
}

// --- Static storage: a process of its own ends with a stager that nobody destroyed before --------

enum class AtExit { kDeviceWorks, kDeviceIsLost, kDriverIsUnloading };

// Constructed before the stager, so destroyed after it: judges the stager's end.
struct Judge {
  explicit Judge(std::shared_ptr<FakeDevice> device) : fake(std::move(device)) {}
  ~Judge() {
    if (fake->hazard_count() != 0) _exit(2);
    const FakeCounters counters = fake->counters();
    if (expect_memory_back && counters.pinned_bytes != counters.pinned_cached_bytes) _exit(3);
    if (!expect_memory_back && counters.pinned_bytes == counters.pinned_cached_bytes) _exit(4);
  }
  std::shared_ptr<FakeDevice> fake;
  bool expect_memory_back = true;
};

// What the device does between `main` and the destructors of static objects.
FaultyDevice* device_at_exit = nullptr;

[[noreturn]] void ExitWithAStaticStager(uint64_t seed, AtExit at_exit) {
  const auto fake = MakeFake(seed);
  static Judge judge(fake);
  static const auto faulty = FaultyDevice::Create(fake);
  static const auto stager = PinnedStager::Create(faulty, {.slot_bytes = 4096}).value();
  constexpr uint64_t kCount = 1024;
  const auto address = fake->AllocateDevice(kCount * sizeof(int32_t)).value();
  static auto mirror = stager->NewMirror(Destination::Of<int32_t>(address, kCount)).value();
  static auto lease = stager->Acquire(64).value();

  const Stream stream = fake->NewStream("plan");
  KernelSpec busy;
  busy.duration = std::chrono::seconds(1);
  if (!fake->Launch(stream, busy)) _exit(6);
  for (int32_t i = 0; i < 3; ++i) {
    if (!stager->Copy(mirror, Values(kCount, i), stream)) _exit(5);
  }
  device_at_exit = faulty.get();
  judge.expect_memory_back = at_exit == AtExit::kDeviceWorks;
  if (at_exit == AtExit::kDeviceIsLost) {
    faulty->Inject({.kind = CallKind::kInspect, .span = FaultSpan::kSticky});
    static_cast<void>(stager->Copy(mirror, Values(kCount, 9), stream));
  }
  if (at_exit == AtExit::kDriverIsUnloading) {
    std::atexit([] {
      for (const CallKind kind : kCallKinds) {
        device_at_exit->Inject({.kind = kind,
                                .span = FaultSpan::kForEver,
                                .error = {ErrorCode::kDevice, 4, "The driver is unloading."}});
      }
    });
  }
  std::exit(0);
}

// Scenario 32: quiet (nothing on standard error), no throw, no abort, no hang.
class StaticStager : public ::testing::TestWithParam<uint64_t> {
 protected:
  // The child runs this program anew, rather than going on as a fork of it.
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  static void ExpectQuietEnd(AtExit at_exit) {
    EXPECT_EXIT(ExitWithAStaticStager(GetParam(), at_exit), ::testing::ExitedWithCode(0),
                ::testing::Eq(std::string()));
  }
};
INSTANTIATE_TEST_SUITE_P(Seeds, StaticStager, ::testing::Values(0, 1, 2));

TEST_P(StaticStager, EndsWithItsCopiesInFlight) { ExpectQuietEnd(AtExit::kDeviceWorks); }
TEST_P(StaticStager, EndsAfterTheDeviceWasLost) { ExpectQuietEnd(AtExit::kDeviceIsLost); }
TEST_P(StaticStager, EndsWhileTheDriverUnloads) { ExpectQuietEnd(AtExit::kDriverIsUnloading); }

}  // namespace
}  // namespace h2d::scenarios
