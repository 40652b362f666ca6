// Several host threads on one stager (I8), as tasks whose interleaving is a choice like any other:
// each lock, each ordered atomic and each call of the device is a point where another may run.
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "h2d/device/fake/host_tasks.h"
#include "h2d/tests/scenarios/support/scenario_test.h"

namespace h2d::scenarios {
namespace {

using Kind = CopyOutcome::Kind;

class Threads : public ScenarioTest {
 protected:
  void Run(std::vector<std::function<void()>> tasks) {
    const Expected<void> ran = RunTasks(fake(), std::move(tasks));
    EXPECT_TRUE(ran) << ran.error().ToString();
  }
};
INSTANTIATE_TEST_SUITE_P(All, Threads, ::testing::ValuesIn(Settings()), NameOf);

// Scenario 13. All slots are held; one task waits for one. Were that a wait under the lock, the
// others could neither ask, nor hit a mirror, nor hand in what they hold, and all would stand
// still.
//
//   waiter  copy: no slot, waits ................................|copy
//   holder  stats, TryCopy: busy, mirror hit, ... submits a slot |
TEST_P(Threads, WhoWaitsForASlotHoldsBackNobody) {
  MakeStager();
  const Stream stream = fake().NewStream("plan");
  const Stream other = fake().NewStream("other");
  const Destination waited = NewDestination("waited for");
  const Destination held = NewDestination("held");
  auto mirror = stager().NewMirror(NewDestination("mirrored"));
  ASSERT_TRUE(mirror);
  ExpectIssued(stager().Copy(*mirror, ValuesOf(5), other));
  std::vector<SlotLease> leases;
  for (uint32_t i = 0; i < slots(); ++i) {
    leases.push_back(stager().Acquire(bytes()).value());
    const std::span<int32_t> slot = leases.back().as<int32_t>();
    const Values values = ValuesOf(7);
    std::copy(values.begin(), values.end(), slot.begin());
  }
  const auto waiter = [&] {
    ExpectIssued(stager().Copy(waited, ValuesOf(6), stream));
    ExpectRead(stream, waited, ValuesOf(6));
  };
  const auto holder = [&] {
    for (int i = 0; i < 5; ++i) {
      EXPECT_EQ(stager().stats().slots_in_use, slots());
      ExpectKind(stager().TryCopy(held, ValuesOf(8), other), Kind::kWouldBlock);
      ExpectKind(stager().Copy(*mirror, ValuesOf(5), other), Kind::kSkipped);
    }
    for (SlotLease& lease : leases) ExpectIssued(lease.Submit(held, other));
    ExpectRead(other, held, ValuesOf(7));
  };
  Run({waiter, holder});
}

TEST_P(Threads, ADroppedLeaseWakesWhoWaits) {
  MakeStager();
  const Stream stream = fake().NewStream("plan");
  const Destination to = NewDestination();
  std::vector<std::optional<SlotLease>> leases;
  for (uint32_t i = 0; i < slots(); ++i) leases.emplace_back(stager().Acquire(bytes()).value());
  const auto before = fake().Now();
  Run({[&] {
         ExpectIssued(stager().Copy(to, ValuesOf(1), stream));
         ExpectRead(stream, to, ValuesOf(1));
       },
       [&] {
         for (auto& lease : leases) lease.reset();
       }});
  EXPECT_LT(fake().Now() - before, std::chrono::seconds(1)) << "woken, not timed out";
}

// Scenario 15. Several tasks, one ring, a stream each: every copy arrives whole.
TEST_P(Threads, EveryTasksCopiesArriveWhole) {
  MakeStager();
  std::vector<std::function<void()>> tasks;
  for (int32_t task = 0; task < 4; ++task) {
    tasks.push_back([this, task] {
      const Stream stream = fake().NewStream();
      for (int32_t i = 0; i < 6; ++i) {
        const Destination to = NewDestination();
        const Values values = ValuesOf(task * 16 + i);
        ExpectIssued(stager().Copy(to, values, stream));
        ExpectRead(stream, to, values);
      }
    });
  }
  Run(std::move(tasks));
  EXPECT_EQ(stager().stats().copies_issued, 24u);
  EXPECT_LE(stager().stats().slots_in_use_most, slots());
}

// Scenario 15, through one mirror: whoever copies first, the others' hits are ordered after it, on
// whatever stream they are.
TEST_P(Threads, OneMirrorServesManyTasks) {
  MakeStager();
  auto mirror = stager().NewMirror(NewDestination("mirrored"));
  ASSERT_TRUE(mirror);
  std::vector<std::function<void()>> tasks;
  for (int task = 0; task < 4; ++task) {
    tasks.push_back([this, &mirror] {
      const Stream stream = fake().NewStream();
      for (int i = 0; i < 4; ++i) {
        const auto outcome = stager().Copy(*mirror, ValuesOf(1), stream);
        ASSERT_TRUE(outcome) << outcome.error().ToString();
        ExpectRead(stream, mirror->destination(), ValuesOf(1));
      }
    });
  }
  Run(std::move(tasks));
  EXPECT_EQ(stager().stats().copies_issued, 1u);
  EXPECT_EQ(stager().stats().copies_skipped, 15u);
}

// Scenario 17, with threads: one captures graph after graph in the mode that forbids most, another
// stages, waits and asks its events all the while.
TEST_P(Threads, AnotherThreadsCaptureIsNotDisturbed) {
  MakeStager();
  const Stream graph = fake().NewStream("graph");
  const Stream plan = fake().NewStream("plan");
  const auto capture = [&] {
    for (int i = 0; i < 4; ++i) {
      ASSERT_TRUE(fake().BeginCapture(graph, CaptureMode::kGlobal));
      ASSERT_TRUE(fake().Launch(graph, KernelSpec()));
      const auto captured = fake().EndCapture(graph);
      ASSERT_TRUE(captured) << captured.error().ToString();
      EXPECT_EQ(captured->operations(), 1u);
    }
  };
  const auto stage = [&] {
    for (int32_t i = 0; i < 8; ++i) {
      const Destination to = NewDestination();
      ExpectIssued(stager().Copy(to, ValuesOf(i), plan));
      ExpectRead(plan, to, ValuesOf(i));
    }
  };
  Run({capture, stage});
}

}  // namespace
}  // namespace h2d::scenarios
