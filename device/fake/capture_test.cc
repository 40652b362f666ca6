// Captures and graphs: rules 19 to 25 of docs/cuda_semantics.md, as measured on an H200 with CUDA
// 13.0, each with the tests that carry its number; then what else the simulator promises.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "h2d/device/fake/fake_device.h"
#include "h2d/device/fake/testing/fake_fixture.h"

namespace h2d {
namespace {

using testing::BytesOf;

constexpr int kUnsupported = 900;
constexpr int kInvalidated = 901;
constexpr int kUnmatched = 903;
constexpr int kUnjoined = 904;
constexpr int kIsolation = 905;
constexpr int kImplicit = 906;
constexpr int kCaptured = 907;
constexpr int kWrongThread = 908;

constexpr CaptureMode kModes[] = {CaptureMode::kGlobal, CaptureMode::kThreadLocal,
                                  CaptureMode::kRelaxed};

class CaptureTest : public testing::FakeFixture {
 protected:
  void Begin(CaptureMode mode = CaptureMode::kGlobal) {
    ASSERT_TRUE(device_->BeginCapture(a_, mode));
  }
  // The error number of the end; 0 when it is well.
  int End() {
    const Expected<FakeGraph> graph = device_->EndCapture(a_);
    return graph ? 0 : graph.error().device_code;
  }
  template <class Call>
  int InAnotherThread(const Call& call) {
    int code = 0;
    std::thread([&] { code = call(); }).join();
    return code;
  }
  // Runs a call, and answers its error number, on one thread or the other.
  using OnThread = std::function<int(const std::function<int()>&)>;
  // Each mode of a capture of this thread, with a call on this thread and on another one.
  template <class Body>
  void ForEachModeAndThread(const Body& body) {
    for (const CaptureMode mode : kModes) {
      SCOPED_TRACE("mode " + std::to_string(static_cast<int>(mode)));
      body(mode, [](const std::function<int()>& call) { return call(); });
      SCOPED_TRACE("another thread");
      body(mode, [this](const std::function<int()>& call) { return InAnotherThread(call); });
    }
  }
  template <class T>
  static int CodeOf(const Expected<T>& answer) {
    return answer ? 0 : answer.error().device_code;
  }
};

TEST_F(CaptureTest, Rule19WorkIsRecordedInsteadOfRunInEachMode) {
  for (const CaptureMode mode : kModes) {
    Event event = *device_->CreateEvent();
    bool ran = false;
    Fill(slot_, 11);
    Begin(mode);
    ASSERT_TRUE(Copy(a_, target_, slot_));
    const std::array<CopyEntry, 1> batch = {CopyEntry{target_ + kBytes, slot_.bytes()}};
    ASSERT_TRUE(device_->CopyBatchAsync(batch, a_));
    ASSERT_TRUE(device_->Launch(a_, {.name = "body"}));
    ASSERT_TRUE(device_->LaunchHostFunc(a_, [&ran] { ran = true; }));
    ASSERT_TRUE(device_->Record(event, a_));
    const Expected<FakeGraph> graph = device_->EndCapture(a_);
    ASSERT_TRUE(graph);
    EXPECT_EQ(graph->operations(), 4U);
    device_->RunUntilIdle();
    EXPECT_EQ(At(target_, 2 * kBytes), BytesOf(0, 2 * kBytes));
    EXPECT_FALSE(ran);
  }
  ExpectNoHazard();
}

TEST_F(CaptureTest, Rule19EachReplayReadsTheSourcesOfItsCopiesAnew) {
  Fill(slot_, 11);
  Begin();
  ASSERT_TRUE(Copy(a_, target_, slot_));
  const std::array<CopyEntry, 1> batch = {CopyEntry{target_ + kBytes, slot_.bytes()}};
  ASSERT_TRUE(device_->CopyBatchAsync(batch, a_));
  const Expected<FakeGraph> graph = device_->EndCapture(a_);
  ASSERT_TRUE(graph);
  for (const int value : {22, 33}) {
    Fill(slot_, value);
    ASSERT_TRUE(device_->LaunchGraph(*graph, b_));
    ASSERT_TRUE(device_->SynchronizeStream(b_));
    EXPECT_EQ(At(target_, 2 * kBytes), BytesOf(value, 2 * kBytes));
  }
  ExpectNoHazard();
}

TEST_F(CaptureTest, Rule19WhetherAStreamCapturesMayBeAskedButNotItsId) {
  for (const CaptureMode mode : kModes) {
    Begin(mode);
    EXPECT_TRUE(*device_->RawIsCapturing(a_));
    EXPECT_FALSE(*device_->RawIsCapturing(b_));
    EXPECT_EQ(End(), 0);
    for (const CaptureMode exchanged : {CaptureMode::kGlobal, CaptureMode::kRelaxed}) {
      Begin(mode);
      device_->ExchangeCaptureMode(exchanged);
      EXPECT_EQ(CodeOf(device_->RawStreamId(a_)), kUnsupported);
      device_->ExchangeCaptureMode(CaptureMode::kGlobal);
      EXPECT_EQ(End(), kInvalidated);
    }
  }
  EXPECT_EQ(*device_->RawStreamId(b_), b_.id());
}

TEST_F(CaptureTest, AWriteIntoASourceOfALaunchedGraphIsReported) {
  Begin();
  ASSERT_TRUE(Copy(a_, target_, slot_));
  const Expected<FakeGraph> graph = device_->EndCapture(a_);
  ASSERT_TRUE(device_->LaunchGraph(*graph, b_));
  Fill(slot_, 1);
  EXPECT_EQ(TheHazard(HazardKind::kWriteToSourceInFlight).first.lane, "b");
}

TEST_F(CaptureTest, AReplayOfACopyWhoseSourceWasReleasedIsReported) {
  Begin();
  ASSERT_TRUE(Copy(a_, target_, slot_));
  const Expected<FakeGraph> graph = device_->EndCapture(a_);
  { const PinnedBuffer dies = std::move(slot_); }
  EXPECT_FALSE(device_->LaunchGraph(*graph, a_));
  TheHazard(HazardKind::kUseOfReleasedMemory);
}

TEST_F(CaptureTest, Rule20TheDevicesOwnMethodsDisturbNoCaptureInAnyMode) {
  for (const CaptureMode mode : kModes) {
    Reset({});
    Event event = RecordOn(b_);
    Begin(mode);
    EXPECT_TRUE(device_->Inspect(a_)->capturing);
    EXPECT_EQ(device_->Inspect(a_)->id, 0U);
    EXPECT_FALSE(device_->Inspect(b_)->capturing);
    const auto all = [&] {
      EXPECT_TRUE(device_->Query(event));
      const Event* const events[] = {&event};
      EXPECT_TRUE(device_->WaitAny(events, {std::chrono::seconds(1)}));
      EXPECT_TRUE(device_->AllocatePinned(kBytes));  // and its release
      EXPECT_TRUE(device_->CreateEvent());
      EXPECT_TRUE(Copy(b_, target_, slot_));
      const std::array<CopyEntry, 1> batch = {CopyEntry{target_, slot_.bytes()}};
      EXPECT_TRUE(device_->CopyBatchAsync(batch, b_));
      EXPECT_FALSE(*device_->RawIsCapturing(b_));
      EXPECT_TRUE(device_->Record(event, b_));
      EXPECT_TRUE(device_->WaitEvent(b_, event));
      EXPECT_TRUE(device_->KindOf(slot_.bytes()));
      EXPECT_TRUE(device_->Trim());
      return 0;
    };
    all();
    InAnotherThread(all);
    EXPECT_EQ(End(), 0);
  }
}

TEST_F(CaptureTest, Rule20RawQueriesAllocationsFreesAndSynchronizesInvalidateByModeAndThread) {
  const Event event = RecordOn(b_);
  using Call = std::function<int()>;
  const std::vector<Call> calls = {
      [&] { return CodeOf(device_->RawQuery(event)); },
      [&] { return CodeOf(device_->RawAllocatePinned(kBytes)); },
      [&] { return CodeOf(device_->RawTrim()); },
      [&] { return CodeOf(device_->Synchronize(event)); },
      [&] { return CodeOf(device_->SynchronizeStream(b_)); },
  };
  for (const Call& call : calls) {
    // Of the capturing thread: forbidden but in a relaxed capture.
    for (const CaptureMode mode : kModes) {
      const bool relaxed = mode == CaptureMode::kRelaxed;
      Begin(mode);
      EXPECT_EQ(call(), relaxed ? 0 : kUnsupported);
      EXPECT_EQ(End(), relaxed ? 0 : kInvalidated);
    }
    // Of another thread: forbidden by a global capture only, to a thread in the global mode.
    for (const CaptureMode mode : kModes) {
      for (const CaptureMode of_thread : kModes) {
        const bool global = mode == CaptureMode::kGlobal && of_thread == CaptureMode::kGlobal;
        Begin(mode);
        const int code = InAnotherThread([&] {
          device_->ExchangeCaptureMode(of_thread);
          return call();
        });
        EXPECT_EQ(code, global ? kUnsupported : 0);
        EXPECT_EQ(End(), global ? kInvalidated : 0);
      }
    }
  }
}

TEST_F(CaptureTest, Rule21AnExchangeToRelaxedMakesTheSameCallsSafeOnEachThread) {
  const Event event = RecordOn(b_);
  const auto calls = [&] {
    const CaptureMode before = device_->ExchangeCaptureMode(CaptureMode::kRelaxed);
    EXPECT_TRUE(device_->RawQuery(event));
    EXPECT_TRUE(device_->RawAllocatePinned(kBytes));
    EXPECT_TRUE(device_->RawTrim());
    EXPECT_TRUE(device_->Synchronize(event));
    EXPECT_EQ(device_->ExchangeCaptureMode(before), CaptureMode::kRelaxed);
    return 0;
  };
  for (const CaptureMode mode : kModes) {
    Begin(mode);
    calls();
    InAnotherThread(calls);
    EXPECT_EQ(End(), 0);
  }
}

TEST_F(CaptureTest, Rule21NoExchangeHelpsToSynchronizeTheCapturingStreamOrTheDevice) {
  for (const CaptureMode mode : kModes) {
    const std::vector<std::function<Expected<void>()>> calls = {
        [&] { return device_->SynchronizeStream(a_); },
        [&] { return device_->SynchronizeDevice(); },
    };
    for (const auto& call : calls) {
      Begin(mode);
      device_->ExchangeCaptureMode(CaptureMode::kRelaxed);
      EXPECT_EQ(CodeOf(call()), kUnsupported);
      device_->ExchangeCaptureMode(CaptureMode::kGlobal);
      EXPECT_EQ(End(), kInvalidated);
    }
  }
}

TEST_F(CaptureTest, Rule22AnEventRecordedInACaptureCannotBeQueried) {
  const std::vector<std::function<int(const Event&)>> uses = {
      [&](const Event& event) { return CodeOf(device_->Query(event)); },
      [&](const Event& event) { return CodeOf(device_->RawQuery(event)); },
      [&](const Event& event) { return CodeOf(device_->Synchronize(event)); },
      [&](const Event& event) {
        const Event* const events[] = {&event};
        return CodeOf(device_->WaitAny(events, {std::chrono::seconds(1)}));
      },
  };
  ForEachModeAndThread([&](CaptureMode mode, const OnThread& on_thread) {
    for (const auto& use : uses) {
      Event event = *device_->CreateEvent();
      Begin(mode);
      ASSERT_TRUE(device_->Record(event, a_));
      EXPECT_EQ(on_thread([&] { return use(event); }), kCaptured);
      EXPECT_EQ(End(), kInvalidated);
      EXPECT_EQ(on_thread([&] { return use(event); }), kCaptured);  // after the capture, too
      ASSERT_TRUE(device_->Record(event, b_));
      EXPECT_EQ(on_thread([&] { return use(event); }), 0);
    }
  });
}

TEST_F(CaptureTest, Rule22ACapturingStreamMustNotWaitForAnEventFromOutside) {
  ForEachModeAndThread([&](CaptureMode mode, const OnThread& on_thread) {
    const Event outside = RecordOn(b_);
    Begin(mode);
    EXPECT_EQ(on_thread([&] { return CodeOf(device_->WaitEvent(a_, outside)); }), kIsolation);
    EXPECT_TRUE(device_->Inspect(a_)->capturing);  // invalid, and not over
    EXPECT_EQ(CodeOf(Copy(a_, target_, slot_)), kInvalidated);
    EXPECT_EQ(End(), kInvalidated);
    EXPECT_FALSE(device_->Inspect(a_)->capturing);
    EXPECT_TRUE(Copy(a_, target_, slot_));
  });
}

TEST_F(CaptureTest, AnEventNeverRecordedIsNoWaitForACapturingStream) {
  const Event event = *device_->CreateEvent();
  Begin();
  EXPECT_TRUE(device_->WaitEvent(a_, event));
  EXPECT_EQ(End(), 0);
}

TEST_F(CaptureTest, Rule24AStreamThatWaitsForACapturedEventJoinsTheCapture) {
  ForEachModeAndThread([&](CaptureMode mode, const OnThread& on_thread) {
    Event fork = *device_->CreateEvent();
    Event join = *device_->CreateEvent();
    Begin(mode);
    ASSERT_TRUE(device_->Record(fork, a_));
    EXPECT_EQ(on_thread([&] { return CodeOf(device_->WaitEvent(b_, fork)); }), 0);
    EXPECT_TRUE(device_->Inspect(b_)->capturing);
    EXPECT_EQ(on_thread([&] { return CodeOf(Copy(b_, target_, slot_)); }), 0);
    ASSERT_TRUE(device_->Record(join, b_));
    ASSERT_TRUE(device_->WaitEvent(a_, join));
    const Expected<FakeGraph> graph = device_->EndCapture(a_);
    ASSERT_TRUE(graph);
    EXPECT_FALSE(device_->Inspect(b_)->capturing);
    Fill(slot_, 3);
    ASSERT_TRUE(device_->LaunchGraph(*graph, a_));
    ASSERT_TRUE(device_->SynchronizeStream(a_));
    EXPECT_EQ(At(target_), BytesOf(3, kBytes));
    Fill(slot_, 4);
    ExpectNoHazard();
  });
}

TEST_F(CaptureTest, Rule23AnInvalidatedCaptureEndsWithoutAGraphAndLeavesTheStreamUsable) {
  for (const CaptureMode mode : kModes) {
    Begin(mode);
    ASSERT_TRUE(Copy(a_, target_, slot_));
    EXPECT_FALSE(device_->RawStreamId(a_));
    EXPECT_TRUE(*device_->RawIsCapturing(a_));  // invalid, and not over
    EXPECT_EQ(CodeOf(Copy(a_, target_, slot_)), kInvalidated);
    const Expected<FakeGraph> graph = device_->EndCapture(a_);
    ASSERT_FALSE(graph);
    EXPECT_EQ(graph.error().device_code, kInvalidated);
    EXPECT_FALSE(*device_->RawIsCapturing(a_));
    EXPECT_TRUE(Copy(a_, target_, slot_));
  }
}

TEST_F(CaptureTest, AnotherThreadMayEndOnlyARelaxedCapture) {
  for (const CaptureMode mode : kModes) {
    const bool relaxed = mode == CaptureMode::kRelaxed;
    Begin(mode);
    EXPECT_EQ(InAnotherThread([&] { return End(); }), relaxed ? 0 : kWrongThread);
    if (!relaxed) {
      EXPECT_EQ(End(), 0);
    }
  }
}

TEST_F(CaptureTest, WorkThatWasNeverJoinedFailsTheEnd) {
  Event fork = *device_->CreateEvent();
  Begin();
  ASSERT_TRUE(device_->Record(fork, a_));
  ASSERT_TRUE(device_->WaitEvent(b_, fork));
  ASSERT_TRUE(Copy(b_, target_, slot_));
  EXPECT_EQ(End(), kUnjoined);
}

TEST_F(CaptureTest, OnlyTheStreamThatBeganACaptureEndsIt) {
  EXPECT_EQ(CodeOf(device_->EndCapture(b_)), kUnmatched);
  Begin();
  EXPECT_EQ(CodeOf(device_->BeginCapture(a_)), 1);
  EXPECT_EQ(End(), 0);
}

TEST_F(CaptureTest, Rule25TheLegacyStreamBesideABlockingStreamsCapture) {
  const Stream blocking = device_->NewStream("blocking", StreamFlags::kBlocking);
  const Stream legacy = device_->LegacyStream();
  const Event event = RecordOn(b_);
  ForEachModeAndThread([&](CaptureMode mode, const OnThread& on_thread) {
    ASSERT_TRUE(device_->BeginCapture(blocking, mode));
    EXPECT_EQ(on_thread([&] { return CodeOf(device_->RawIsCapturing(legacy)); }), kImplicit);
    EXPECT_TRUE(device_->Inspect(legacy)->capturing);  // refused by whoever asks first
    EXPECT_TRUE(device_->EndCapture(blocking));        // and harmless
    const std::vector<std::function<int()>> work = {
        [&] { return CodeOf(Copy(legacy, target_, slot_)); },
        [&] { return CodeOf(device_->WaitEvent(legacy, event)); },
        [&] { return CodeOf(device_->Launch(legacy, {})); },
    };
    for (const auto& call : work) {
      ASSERT_TRUE(device_->BeginCapture(blocking, mode));
      EXPECT_EQ(on_thread(call), kImplicit);
      EXPECT_EQ(CodeOf(device_->EndCapture(blocking)), kInvalidated);
    }
    EXPECT_EQ(CodeOf(device_->BeginCapture(legacy, mode)), kUnsupported);
    Begin(mode);  // of a non-blocking stream: no concern of the legacy stream
    EXPECT_EQ(on_thread([&] { return CodeOf(device_->RawIsCapturing(legacy)); }), 0);
    EXPECT_EQ(on_thread([&] { return CodeOf(Copy(legacy, target_, slot_)); }), 0);
    EXPECT_EQ(End(), 0);
  });
}

TEST_F(CaptureTest, LaunchesOfOneExecutableRunOneAfterAnother) {
  Begin();
  ASSERT_TRUE(device_->Launch(a_, {.name = "body", .writes = {{target_, kBytes}}}));
  const Expected<FakeGraph> graph = device_->EndCapture(a_);
  ASSERT_TRUE(device_->Hold(a_));
  ASSERT_TRUE(device_->LaunchGraph(*graph, a_));
  ASSERT_TRUE(device_->LaunchGraph(*graph, b_));
  device_->RunUntilIdle();
  EXPECT_EQ(*device_->QueryStream(b_), EventState::kPending);
  ASSERT_TRUE(device_->Release(a_));
  EXPECT_EQ(device_->RunUntilIdle(), 0U);
  ExpectNoHazard();  // both write the target: the executable orders them
}

TEST_F(CaptureTest, AGraphReadsItsInputsAfterTheCopiesThatItsStreamWaitsFor) {
  Begin();
  ASSERT_TRUE(device_->Launch(a_, {.name = "body", .reads = {{target_, kBytes}}}));
  const Expected<FakeGraph> graph = device_->EndCapture(a_);
  for (const bool waits : {true, false}) {
    ASSERT_TRUE(device_->SynchronizeDevice());
    ASSERT_TRUE(Copy(b_, target_, slot_));
    const Event event = RecordOn(b_);
    if (waits) {
      ASSERT_TRUE(device_->WaitEvent(a_, event));
    }
    ASSERT_TRUE(device_->LaunchGraph(*graph, a_));
    if (waits) {
      ExpectNoHazard();
    } else {
      EXPECT_NE(TheHazard(HazardKind::kUnorderedAccess).second.operation.find("'body'"),
                std::string::npos);
    }
  }
}

TEST_F(CaptureTest, UnorderedBranchesOfAGraphConflict) {
  Event fork = *device_->CreateEvent();
  Event join = *device_->CreateEvent();
  Begin();
  ASSERT_TRUE(device_->Record(fork, a_));
  ASSERT_TRUE(device_->WaitEvent(b_, fork));
  ASSERT_TRUE(device_->Launch(a_, {.name = "left", .writes = {{target_, kBytes}}}));
  ASSERT_TRUE(device_->Launch(b_, {.name = "right", .writes = {{target_, kBytes}}}));
  ASSERT_TRUE(device_->Record(join, b_));
  ASSERT_TRUE(device_->WaitEvent(a_, join));
  ASSERT_TRUE(device_->Launch(a_, {.name = "after", .writes = {{target_, kBytes}}}));
  const Expected<FakeGraph> graph = device_->EndCapture(a_);
  ASSERT_TRUE(graph);
  EXPECT_EQ(graph->operations(), 3U);
  ASSERT_TRUE(device_->LaunchGraph(*graph, a_));
  TheHazard(HazardKind::kUnorderedAccess);  // left and right; "after" follows both
}

TEST_F(CaptureTest, AGraphLaunchedIntoACaptureBecomesPartOfIt) {
  Begin();
  ASSERT_TRUE(Copy(a_, target_, slot_));
  const Expected<FakeGraph> inner = device_->EndCapture(a_);
  Begin();
  ASSERT_TRUE(Copy(a_, target_ + kBytes, slot_));
  ASSERT_TRUE(device_->LaunchGraph(*inner, a_));
  const Expected<FakeGraph> outer = device_->EndCapture(a_);
  ASSERT_TRUE(outer);
  EXPECT_EQ(outer->operations(), 2U);
  Fill(slot_, 6);
  ASSERT_TRUE(device_->LaunchGraph(*outer, b_));
  ASSERT_TRUE(device_->SynchronizeStream(b_));
  EXPECT_EQ(At(target_), BytesOf(6, kBytes));
  EXPECT_EQ(At(target_ + kBytes), BytesOf(6, kBytes));
}

TEST_F(CaptureTest, AGraphLaunchedIntoACaptureKeepsItsBranchesUnordered) {
  const auto kernel = [&](const Stream& stream, const char* name, uint64_t offset) {
    EXPECT_TRUE(device_->Launch(stream, {.name = name, .writes = {{target_ + offset, kBytes}}}));
  };
  const auto fork_and_join = [&](const std::function<void()>& right) {
    Event fork = *device_->CreateEvent();
    Event join = *device_->CreateEvent();
    EXPECT_TRUE(device_->Record(fork, a_));
    EXPECT_TRUE(device_->WaitEvent(b_, fork));
    right();
    EXPECT_TRUE(device_->Record(join, b_));
    EXPECT_TRUE(device_->WaitEvent(a_, join));
  };
  Begin();
  fork_and_join([&] {
    kernel(a_, "left", 0);
    kernel(b_, "right", 0);
  });
  const Expected<FakeGraph> inner = device_->EndCapture(a_);
  ASSERT_TRUE(inner);
  Begin();
  kernel(a_, "before", 0);
  ASSERT_TRUE(device_->LaunchGraph(*inner, a_));
  fork_and_join([&] { kernel(b_, "beside nothing", 0); });
  ASSERT_TRUE(device_->LaunchGraph(*inner, a_));
  kernel(a_, "after", 0);
  const Expected<FakeGraph> outer = device_->EndCapture(a_);
  ASSERT_TRUE(outer);
  EXPECT_EQ(outer->operations(), 7U);
  ASSERT_TRUE(device_->LaunchGraph(*outer, a_));
  EXPECT_EQ(device_->RunUntilIdle(), 0U);
  const std::vector<Hazard> hazards = device_->hazards();  // left and right, twice
  ASSERT_EQ(hazards.size(), 2U) << device_->Timeline();
  for (const Hazard& hazard : hazards) {
    EXPECT_NE(hazard.first.operation.find("'left'"), std::string::npos) << hazard.ToString();
    EXPECT_NE(hazard.second.operation.find("'right'"), std::string::npos) << hazard.ToString();
  }
}

TEST_F(CaptureTest, DestroyingACapturingStreamInvalidatesItsCapture) {
  Event fork = *device_->CreateEvent();
  const Stream joined = device_->NewStream();
  Begin();
  ASSERT_TRUE(device_->Record(fork, a_));
  ASSERT_TRUE(device_->WaitEvent(joined, fork));
  ASSERT_TRUE(device_->DestroyStream(joined));
  EXPECT_EQ(End(), kInvalidated);
}

TEST_F(CaptureTest, DestroyingTheStreamThatBeganACaptureEndsIt) {
  Event fork = *device_->CreateEvent();
  const Event outside = RecordOn(b_);
  const Stream origin = device_->NewStream();
  ASSERT_TRUE(device_->BeginCapture(origin));
  ASSERT_TRUE(device_->Record(fork, origin));
  ASSERT_TRUE(device_->WaitEvent(b_, fork));
  ASSERT_TRUE(device_->DestroyStream(origin));
  EXPECT_FALSE(device_->Inspect(b_)->capturing);
  EXPECT_TRUE(device_->RawQuery(outside));  // which an open capture forbids
  EXPECT_TRUE(device_->SynchronizeDevice());
  EXPECT_TRUE(Copy(b_, target_, slot_));
}

}  // namespace
}  // namespace h2d
