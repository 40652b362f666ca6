// Host threads as tasks: every interleaving a choice, every lock an edge.
#include "h2d/device/fake/host_tasks.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "h2d/device/fake/testing/fake_fixture.h"
#include "h2d/device/sync.h"

namespace h2d {
namespace {

class HostTasksTest : public testing::FakeFixture {
 protected:
  void ResetSeeded(uint64_t seed) {
    FakeOptions options;
    options.choices = std::make_shared<HashChoices>(seed);
    Reset(options);
  }
};

TEST_F(HostTasksTest, TasksRunOneAtATimeAndToTheirEnds) {
  int inside = 0;
  int ended = 0;
  const auto task = [&] {
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(inside++, 0);
      --inside;
      EXPECT_TRUE(device_->Inspect(a_));
    }
    ++ended;
  };
  ASSERT_TRUE(RunTasks(*device_, {task, task, task}));
  EXPECT_EQ(ended, 3);
}

TEST_F(HostTasksTest, TheKindestChoiceRunsOneTaskAfterTheOther) {
  std::string order;
  const auto task = [&](char name) {
    return [this, &order, name] {
      for (int i = 0; i < 3; ++i) {
        EXPECT_TRUE(device_->Inspect(a_));
        order += name;
      }
    };
  };
  ASSERT_TRUE(RunTasks(*device_, {task('x'), task('y')}));
  EXPECT_EQ(order, "xxxyyy");
}

TEST_F(HostTasksTest, SeedsReachManyInterleavings) {
  std::set<std::string> orders;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    ResetSeeded(seed);
    std::string order;
    const auto task = [&](char name) {
      return [this, &order, name] {
        for (int i = 0; i < 3; ++i) {
          EXPECT_TRUE(device_->Inspect(a_));
          order += name;
        }
      };
    };
    ASSERT_TRUE(RunTasks(*device_, {task('x'), task('y')}));
    orders.insert(order);
  }
  EXPECT_GE(orders.size(), 10U);
}

TEST_F(HostTasksTest, EqualSeedsRunEqually) {
  std::vector<uint64_t> hashes;
  for (int run = 0; run < 2; ++run) {
    ResetSeeded(1234);
    Mutex mutex;
    int value = 0;
    const auto task = [&] {
      for (int i = 0; i < 10; ++i) {
        const MutexLock lock(mutex);
        Fill(slot_, ++value);
        EXPECT_TRUE(Copy(a_, target_, slot_));
        EXPECT_TRUE(device_->SynchronizeStream(a_));
      }
    };
    ASSERT_TRUE(RunTasks(*device_, {task, task}));
    ExpectNoHazard();
    hashes.push_back(device_->TraceHash());
  }
  EXPECT_EQ(hashes[0], hashes[1]);
}

TEST_F(HostTasksTest, AMutexExcludesInEveryInterleaving) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    ResetSeeded(seed);
    Mutex mutex;
    int inside = 0;
    const auto task = [&] {
      for (int i = 0; i < 5; ++i) {
        const MutexLock lock(mutex);
        EXPECT_EQ(inside++, 0);
        EXPECT_TRUE(device_->Inspect(a_));
        --inside;
      }
    };
    ASSERT_TRUE(RunTasks(*device_, {task, task, task}));
  }
}

TEST_F(HostTasksTest, TwoTasksThatWriteOneSlotWithoutALockAreReported) {
  const auto task = [&] { Fill(slot_, 1); };
  ASSERT_TRUE(RunTasks(*device_, {task, task}));
  const Hazard hazard = TheHazard(HazardKind::kUnorderedAccess);
  EXPECT_EQ(hazard.first.lane, "task 0");
  EXPECT_EQ(hazard.second.lane, "task 1");
}

TEST_F(HostTasksTest, ALockOrdersTheTasksThatHoldIt) {
  Mutex mutex;
  const auto task = [&] {
    const MutexLock lock(mutex);
    Fill(slot_, 1);
  };
  ASSERT_TRUE(RunTasks(*device_, {task, task}));
  ExpectNoHazard();
}

TEST_F(HostTasksTest, AnotherLockOrdersNothing) {
  Mutex one;
  Mutex other;
  ASSERT_TRUE(RunTasks(*device_, {[&] {
                                    const MutexLock lock(one);
                                    Fill(slot_, 1);
                                  },
                                  [&] {
                                    const MutexLock lock(other);
                                    Fill(slot_, 1);
                                  }}));
  TheHazard(HazardKind::kUnorderedAccess);
}

TEST_F(HostTasksTest, AnAtomicThatWasStoredOrdersWhoLoadsIt) {
  Atomic<int> ready(0);
  const auto writer = [&] {
    Fill(slot_, 1);
    ready.Store(1);
  };
  const auto reader = [&] {
    while (ready.Load() == 0) {
    }
    Fill(slot_, 2);
  };
  ASSERT_TRUE(RunTasks(*device_, {writer, reader}));
  ready.Store(0);
  ASSERT_TRUE(RunTasks(*device_, {reader, writer}));
  ExpectNoHazard();
}

TEST_F(HostTasksTest, TasksOfALaterRunOnTheSameDeviceAreUnorderedToo) {
  Event event = *device_->CreateEvent();
  const auto nothing = [] {};
  const auto fill = [&] { Fill(slot_, 1); };
  const auto copy = [&] { EXPECT_TRUE(Copy(a_, target_, slot_)); };
  const auto record = [&] { EXPECT_TRUE(device_->Record(event, a_)); };
  const auto query = [&] { EXPECT_TRUE(device_->Query(event)); };
  ASSERT_TRUE(RunTasks(*device_, {nothing, nothing}));
  ASSERT_TRUE(RunTasks(*device_, {fill, fill}));
  TheHazard(HazardKind::kUnorderedAccess);
  ASSERT_TRUE(RunTasks(*device_, {fill, fill}));
  TheHazard(HazardKind::kUnorderedAccess);
  ASSERT_TRUE(RunTasks(*device_, {fill, copy}));
  TheHazard(HazardKind::kWriteToSourceInFlight);
  ASSERT_TRUE(RunTasks(*device_, {record, query}));
  TheHazard(HazardKind::kUnorderedRecord);
}

TEST_F(HostTasksTest, ACompletionSeenByOneTaskIsHandedOnByALockAndNotByItself) {
  for (const bool handed_on : {true, false}) {
    Reset({});
    Mutex mutex;
    bool seen = false;
    Fill(slot_, 1);
    ASSERT_TRUE(Copy(a_, target_, slot_));
    Event event = RecordOn(a_);
    const auto observer = [&] {
      EXPECT_TRUE(device_->Synchronize(event));
      const MutexLock lock(mutex);
      seen = true;
    };
    const auto writer = [&] {
      for (bool may_write = false; !may_write;) {
        if (handed_on) {
          const MutexLock lock(mutex);
          may_write = seen;
        } else {
          EXPECT_TRUE(device_->Inspect(a_));  // another task may run; no edge
          may_write = seen;
        }
      }
      Fill(slot_, 2);
    };
    ASSERT_TRUE(RunTasks(*device_, {observer, writer}));
    if (handed_on) {
      ExpectNoHazard();
    } else {
      TheHazard(HazardKind::kWriteToSourceInFlight);
    }
  }
}

TEST_F(HostTasksTest, AQueryOfARecordThatNothingOrdersIsReported) {
  Event event = *device_->CreateEvent();
  ASSERT_TRUE(RunTasks(*device_, {[&] { EXPECT_TRUE(device_->Record(event, a_)); },
                                  [&] { EXPECT_TRUE(device_->Query(event)); }}));
  const Hazard hazard = TheHazard(HazardKind::kUnorderedRecord);
  EXPECT_EQ(hazard.first.lane, "a");
  EXPECT_EQ(hazard.second.lane, "task 1");
}

TEST_F(HostTasksTest, AUseOfAnEventThatNothingOrdersBeforeItsNextRecordIsReported) {
  const std::vector<std::function<void(const Event&)>> uses = {
      [&](const Event& event) { EXPECT_TRUE(device_->Query(event)); },
      [&](const Event& event) { EXPECT_TRUE(device_->Synchronize(event)); },
      [&](const Event& event) { EXPECT_TRUE(device_->WaitEvent(b_, event)); },
      [&](const Event& event) {
        const Event* const events[] = {&event};
        EXPECT_TRUE(device_->WaitAny(events, {std::chrono::seconds(1)}));
      },
  };
  for (const bool recorded_before : {false, true}) {
    for (const auto& use : uses) {
      Event event = recorded_before ? RecordOn(b_) : *device_->CreateEvent();
      ASSERT_TRUE(RunTasks(
          *device_, {[&] { use(event); }, [&] { EXPECT_TRUE(device_->Record(event, a_)); }}));
      const Hazard hazard = TheHazard(HazardKind::kUnorderedRecord);
      EXPECT_NE(hazard.missing.find("use of the event by task 0"), std::string::npos);
      EXPECT_NE(hazard.missing.find("record by task 1"), std::string::npos);
    }
  }
}

TEST_F(HostTasksTest, ALockBetweenTheUseOfAnEventAndItsNextRecordOrdersThem) {
  Event event = RecordOn(a_);
  Mutex mutex;
  ASSERT_TRUE(RunTasks(*device_, {[&] {
                                    const MutexLock lock(mutex);
                                    EXPECT_TRUE(device_->Query(event));
                                  },
                                  [&] {
                                    const MutexLock lock(mutex);
                                    EXPECT_TRUE(device_->Record(event, a_));
                                  }}));
  ExpectNoHazard();
}

TEST_F(HostTasksTest, AFreeThatNothingOrdersAfterACallThatUsesTheMemoryIsReported) {
  const auto use = [&] { return [&] { static_cast<void>(Copy(a_, target_, slot_)); }; };
  const auto free = [&] { return [&] { EXPECT_TRUE(device_->FreeDevice(target_)); }; };
  ASSERT_TRUE(RunTasks(*device_, {use(), free()}));
  const Hazard hazard = TheHazard(HazardKind::kUnorderedAccess);
  EXPECT_EQ(hazard.first.lane, "a");
  EXPECT_EQ(hazard.second.lane, "task 1");
  EXPECT_NE(hazard.missing.find("by task 0"), std::string::npos) << hazard.missing;
  Reset(Unpoisoned());
  ASSERT_TRUE(RunTasks(*device_, {free(), use()}));
  TheHazard(HazardKind::kUseOfReleasedMemory);
}

TEST_F(HostTasksTest, AFreeAfterALockWaitsForWorkThatIsStillToRun) {
  Mutex mutex;
  ASSERT_TRUE(RunTasks(*device_, {[&] {
                                    const MutexLock lock(mutex);
                                    EXPECT_TRUE(Copy(a_, target_, slot_));
                                  },
                                  [&] {
                                    const MutexLock lock(mutex);
                                    EXPECT_TRUE(device_->FreeDevice(target_));
                                  }}));
  ExpectNoHazard();
}

// What is freed while others use it stays whole for the simulation: address sanitizer says so.
TEST_F(HostTasksTest, WorkThatIsEnqueuedWhileAFreeWaitsIsReportedAndTouchesNoFreedMemory) {
  const KernelSpec busy{.name = "busy", .duration = std::chrono::milliseconds(20)};
  ASSERT_TRUE(device_->Launch(a_, busy));
  ASSERT_TRUE(RunTasks(*device_, {[&] { EXPECT_TRUE(device_->FreeDevice(target_)); },
                                  [&] {
                                    EXPECT_TRUE(Copy(a_, target_, slot_));
                                    EXPECT_TRUE(device_->Launch(a_, busy));
                                    EXPECT_TRUE(Copy(a_, target_, slot_));
                                  }}));
  EXPECT_EQ(device_->RunUntilIdle(), 0U);
  TheHazard(HazardKind::kUnorderedAccess);
}

TEST_F(HostTasksTest, AReleaseInFlightWhileATrimWaitsIsReportedAndTouchesNoFreedMemory) {
  const KernelSpec busy{.name = "busy", .duration = std::chrono::milliseconds(20)};
  ASSERT_TRUE(device_->Launch(a_, busy));
  ASSERT_TRUE(RunTasks(*device_, {[&] { EXPECT_TRUE(device_->Trim()); },
                                  [&] {
                                    const PinnedBuffer dies = *device_->AllocatePinned(1 << 16);
                                    EXPECT_TRUE(device_->Launch(b_, busy));
                                    EXPECT_TRUE(device_->LaunchHostFunc(b_, [] {}));
                                    EXPECT_TRUE(device_->CopyAsync(target_,
                                                                   dies.bytes().first(kBytes), b_));
                                  }}));
  EXPECT_EQ(device_->RunUntilIdle(), 0U);
  TheHazard(HazardKind::kReleaseOfSourceInFlight);
}

TEST_F(HostTasksTest, MemoryThatIsFreedTwiceAtOnceIsReported) {
  ASSERT_TRUE(device_->Launch(a_, {.name = "busy", .duration = std::chrono::milliseconds(20)}));
  std::vector<bool> freed(2);
  const auto free = [&](size_t task) {
    return [&, task] { freed[task] = device_->FreeDevice(target_).has_value(); };
  };
  ASSERT_TRUE(RunTasks(*device_, {free(0), free(1)}));
  EXPECT_NE(freed[0], freed[1]);
  TheHazard(HazardKind::kUseOfReleasedMemory);
}

TEST_F(HostTasksTest, AHostFunctionHandsOnOnlyWhatItDidBeforeItsRelease) {
  for (const bool writes_before : {true, false}) {
    Reset(Unpoisoned());
    Atomic<int> flag(0);
    int seen = 0;
    const auto function = [&] {
      if (writes_before) Fill(slot_, 1);
      flag.Store(1);
      if (!writes_before) Fill(slot_, 1);
    };
    ASSERT_TRUE(RunTasks(*device_, {[&] {
                                      EXPECT_TRUE(device_->LaunchHostFunc(a_, function));
                                      device_->RunUntilIdle();
                                    },
                                    [&] {
                                      seen = flag.Load();
                                      Fill(slot_, 2);
                                    }}));
    ASSERT_EQ(seen, 1);
    if (writes_before) {
      ExpectNoHazard();
    } else {
      TheHazard(HazardKind::kUnorderedAccess);
    }
  }
}

TEST_F(HostTasksTest, AWaitingTaskLetsTheOthersRunAndIsWoken) {
  Wakeup wakeup;
  bool woken = false;
  const auto waiter = [&] {
    const uint64_t seen = wakeup.Epoch();
    const auto answer = device_->WaitAny({}, {std::chrono::hours(1), &wakeup, seen});
    ASSERT_TRUE(answer);
    EXPECT_EQ(*answer, std::nullopt);
    woken = true;
  };
  ASSERT_TRUE(RunTasks(*device_, {waiter, [&] {
                                    EXPECT_FALSE(woken);
                                    wakeup.Notify();
                                  }}));
  EXPECT_TRUE(woken);
  EXPECT_LT(device_->Now(), std::chrono::seconds(1));
}

TEST_F(HostTasksTest, AWakeupOrdersWhoItWakes) {
  Wakeup wakeup;
  const auto waiter = [&] {
    if (const uint64_t seen = wakeup.Epoch(); seen == 0) {
      ASSERT_TRUE(device_->WaitAny({}, {std::chrono::hours(1), &wakeup, seen}));
    }
    Fill(slot_, 2);
  };
  ASSERT_TRUE(RunTasks(*device_, {waiter, [&] {
                                    Fill(slot_, 1);
                                    wakeup.Notify();
                                  }}));
  ExpectNoHazard();
}

TEST_F(HostTasksTest, AWaitWithADeadlineEndsInVirtualTimeWhenNothingElseCanRun) {
  bool timed_out = false;
  ASSERT_TRUE(device_->Hold(a_));
  ASSERT_TRUE(Copy(a_, target_, slot_));
  Event event = RecordOn(a_);
  ASSERT_TRUE(RunTasks(*device_, {[&] {
    const Event* const events[] = {&event};
    const auto answer = device_->WaitAny(events, {std::chrono::seconds(5)});
    timed_out = answer && !answer->has_value();
  }}));
  EXPECT_TRUE(timed_out);
  EXPECT_GE(device_->Now(), std::chrono::seconds(5));
}

TEST_F(HostTasksTest, TasksThatTakeTwoLocksInBothOrdersDeadlockInSomeInterleaving) {
  int deadlocks = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    ResetSeeded(seed);
    Mutex one;
    Mutex other;
    const auto task = [&](Mutex& first, Mutex& second) {
      return [&] {
        const MutexLock outer(first);
        const MutexLock inner(second);
      };
    };
    const Expected<void> ran = RunTasks(*device_, {task(one, other), task(other, one)});
    if (ran) continue;
    ++deadlocks;
    EXPECT_NE(ran.error().message.find("task 0 waits for a mutex that task 1 holds"),
              std::string::npos)
        << ran.error().message;
    TheHazard(HazardKind::kDeadlock);
  }
  EXPECT_GT(deadlocks, 0);
}

TEST_F(HostTasksTest, ATaskThatWaitsForWhatNobodyDoesIsADeadlockAndNoHang) {
  ASSERT_TRUE(device_->Hold(a_));
  ASSERT_TRUE(Copy(a_, target_, slot_));
  const Expected<void> ran =
      RunTasks(*device_, {[&] { EXPECT_FALSE(device_->SynchronizeStream(a_)); }, [] {}});
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().code, ErrorCode::kFailedPrecondition);
  const std::vector<Hazard> hazards = device_->hazards();
  ASSERT_FALSE(hazards.empty());
  EXPECT_EQ(hazards.front().kind, HazardKind::kDeadlock);
  EXPECT_NE(hazards.front().missing.find("a holds 1 operation and is held by the test"),
            std::string::npos)
      << hazards.front().missing;
}

TEST_F(HostTasksTest, ATaskThatPollsForAnotherOneLetsItRun) {
  int turns = 0;
  bool done = false;
  ASSERT_TRUE(RunTasks(*device_, {[&] {
                                    while (!done) {
                                      EXPECT_TRUE(device_->Inspect(a_));
                                      ++turns;
                                    }
                                  },
                                  [&] { done = true; }}));
  EXPECT_LT(turns, 5'000);
}

TEST_F(HostTasksTest, EachTaskHasItsOwnDefaultStreamAndCaptureMode) {
  std::vector<StreamId> ids(2);
  const auto task = [&](size_t index) {
    return [this, &ids, index] {
      EXPECT_EQ(device_->ExchangeCaptureMode(CaptureMode::kRelaxed), CaptureMode::kGlobal);
      ids[index] = device_->Inspect(device_->PerThreadStream())->id;
    };
  };
  ASSERT_TRUE(RunTasks(*device_, {task(0), task(1)}));
  EXPECT_NE(ids[0], ids[1]);
  EXPECT_EQ(device_->ExchangeCaptureMode(CaptureMode::kGlobal), CaptureMode::kGlobal);
}

TEST_F(HostTasksTest, WhatTasksDidHappensBeforeTheirRunsReturn) {
  ASSERT_TRUE(RunTasks(*device_, {[&] { Fill(slot_, 1); }}));
  Fill(slot_, 2);
  ASSERT_TRUE(RunTasks(*device_, {[&] { Fill(slot_, 3); }}));
  ExpectNoHazard();
}

TEST_F(HostTasksTest, TasksInsideTasksAreRefused) {
  ASSERT_TRUE(RunTasks(*device_, {[&] {
    EXPECT_EQ(RunTasks(*device_, {[] {}}).error().code, ErrorCode::kFailedPrecondition);
  }}));
}

TEST_F(HostTasksTest, ThousandsOfRunsReuseTheirThreads) {
  for (int run = 0; run < 2'000; ++run) {
    int ran = 0;
    ASSERT_TRUE(RunTasks(*device_, {[&] { ++ran; }, [&] { ++ran; }, [&] { ++ran; }}));
    ASSERT_EQ(ran, 3);
  }
}

}  // namespace
}  // namespace h2d
