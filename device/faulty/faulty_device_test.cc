#include "h2d/device/faulty/faulty_device.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "h2d/device/host/host_device.h"

namespace h2d {
namespace {

class FaultyDeviceTest : public testing::Test {
 protected:
  // Copies `value` to `destination_`.
  Expected<void> Copy(int value) {
    const std::byte source = static_cast<std::byte>(value);
    return faulty_->CopyAsync(DevicePtr(&destination_), {&source, 1}, stream_);
  }
  // Copies the values 1 to `count`: "+" for each copy that succeeds, "-" for one that fails.
  std::string CopyMany(int count) {
    std::string answers;
    for (int value = 1; value <= count; ++value) answers += Copy(value) ? '+' : '-';
    return answers;
  }
  // Makes one call of `kind`, and answers its error, if it gave one.
  std::optional<Error> Call(CallKind kind);

  std::shared_ptr<HostDevice> inner_ = HostDevice::Create();
  std::shared_ptr<FaultyDevice> faulty_ = FaultyDevice::Create(inner_);
  Stream stream_ = inner_->NewStream();
  Event event_ = *inner_->CreateEvent();
  std::byte destination_{0};
};

template <class T>
std::optional<Error> ErrorIn(const Expected<T>& result) {
  return result ? std::optional<Error>() : result.error();
}

std::optional<Error> FaultyDeviceTest::Call(CallKind kind) {
  const std::byte source{1};
  const CopyEntry entries[] = {{DevicePtr(&destination_), {&source, 1}}};
  switch (kind) {
    case CallKind::kAllocatePinned:
      return ErrorIn(faulty_->AllocatePinned(1));
    case CallKind::kTrim:
      return ErrorIn(faulty_->Trim());
    case CallKind::kKindOf:
      return ErrorIn(faulty_->KindOf({&source, 1}));
    case CallKind::kCopyAsync:
      return ErrorIn(Copy(1));
    case CallKind::kCopyBatchAsync:
      return ErrorIn(faulty_->CopyBatchAsync(entries, stream_));
    case CallKind::kCreateEvent:
      return ErrorIn(faulty_->CreateEvent());
    case CallKind::kRecord:
      return ErrorIn(faulty_->Record(event_, stream_));
    case CallKind::kQuery:
      return ErrorIn(faulty_->Query(event_));
    case CallKind::kWaitAny:
      return ErrorIn(faulty_->WaitAny({}, {}));
    case CallKind::kWaitEvent:
      return ErrorIn(faulty_->WaitEvent(stream_, event_));
    case CallKind::kInspect:
      return ErrorIn(faulty_->Inspect(stream_));
  }
  return std::nullopt;
}

TEST_F(FaultyDeviceTest, WithoutFaultsEveryCallReachesTheDeviceInside) {
  for (const CallKind kind : kCallKinds) EXPECT_EQ(Call(kind), std::nullopt) << ToString(kind);
  EXPECT_EQ(destination_, std::byte{1});
  EXPECT_EQ(faulty_->MemorySpace(), inner_->MemorySpace());
  const std::chrono::nanoseconds before = inner_->Now();
  const std::chrono::nanoseconds now = faulty_->Now();
  EXPECT_LE(before, now);
  EXPECT_LE(now, inner_->Now());
  EXPECT_EQ(faulty_->FaultCount(), 0u);
}

TEST_F(FaultyDeviceTest, EachKindOfCallCanFailAloneAndIsCounted) {
  for (const CallKind kind : kCallKinds) {
    faulty_ = FaultyDevice::Create(inner_);
    faulty_->Inject({.kind = kind});
    for (const CallKind called : kCallKinds) {
      const std::optional<Error> error = Call(called);
      ASSERT_EQ(error.has_value(), called == kind) << ToString(kind) << " " << ToString(called);
      EXPECT_EQ(faulty_->CallCount(called), 1u);
      if (!error) continue;
      EXPECT_EQ(error->code, ErrorCode::kDevice);
      EXPECT_EQ(error->message,
                "A fault was injected into call 1 of " + std::string(ToString(kind)) + ".");
    }
    EXPECT_EQ(faulty_->FaultCount(), 1u);
  }
}

TEST_F(FaultyDeviceTest, NamesOfCallsDiffer) {
  std::set<std::string_view> names;
  for (const CallKind kind : kCallKinds) names.insert(ToString(kind));
  EXPECT_EQ(names.size(), kCallKinds.size());
}

TEST_F(FaultyDeviceTest, AFaultOfOneCallStrikesThatCallOnly) {
  faulty_->Inject({.kind = CallKind::kCopyAsync, .call = 3});
  EXPECT_EQ(CopyMany(5), "++-++");
  EXPECT_EQ(faulty_->CallCount(CallKind::kCopyAsync), 5u);
}

TEST_F(FaultyDeviceTest, AFaultForEverStrikesEveryLaterCallOfItsKindAndNoOther) {
  faulty_->Inject({.kind = CallKind::kCopyAsync, .call = 3, .span = FaultSpan::kForEver});
  EXPECT_EQ(CopyMany(5), "++---");
  EXPECT_EQ(Call(CallKind::kRecord), std::nullopt);
  EXPECT_EQ(faulty_->FaultCount(), 3u);
}

TEST_F(FaultyDeviceTest, AStickyFaultAnswersItsFirstErrorToEveryLaterCall) {
  const Error lost{ErrorCode::kDevice, 700, "An address was illegal."};
  faulty_->Inject(
      {.kind = CallKind::kRecord, .call = 2, .span = FaultSpan::kSticky, .error = lost});
  EXPECT_EQ(Call(CallKind::kRecord), std::nullopt);
  EXPECT_EQ(CopyMany(1), "+");
  ASSERT_NE(Call(CallKind::kRecord), std::nullopt);
  for (const CallKind kind : kCallKinds) {
    const std::optional<Error> error = Call(kind);
    ASSERT_TRUE(error) << ToString(kind);
    EXPECT_EQ(error->device_code, 700);
    EXPECT_EQ(error->message, "An address was illegal.");
  }
}

TEST_F(FaultyDeviceTest, AFaultBeforeTheCallIssuesNothing) {
  faulty_->Inject({.kind = CallKind::kCopyAsync, .timing = FaultTiming::kBeforeCall});
  EXPECT_FALSE(Copy(1));
  EXPECT_EQ(destination_, std::byte{0});
}

TEST_F(FaultyDeviceTest, AFaultAfterTheCallLeavesWhatWasIssued) {
  faulty_->Inject({.kind = CallKind::kCopyAsync, .timing = FaultTiming::kAfterCall});
  EXPECT_FALSE(Copy(1));
  EXPECT_EQ(destination_, std::byte{1});
}

TEST_F(FaultyDeviceTest, MemoryOfAnAllocationThatFailsAfterTheCallGoesBack) {
  inner_ = HostDevice::Create({.max_pinned_bytes = 100});
  faulty_ = FaultyDevice::Create(inner_);
  faulty_->Inject({.kind = CallKind::kAllocatePinned, .timing = FaultTiming::kAfterCall});
  EXPECT_FALSE(faulty_->AllocatePinned(100));
  EXPECT_TRUE(faulty_->AllocatePinned(100));
}

TEST_F(FaultyDeviceTest, AStickyFaultAfterItsCallLetsThatCallHappenAndNoLaterOne) {
  faulty_->Inject({.kind = CallKind::kCopyAsync,
                   .call = 2,
                   .span = FaultSpan::kSticky,
                   .timing = FaultTiming::kAfterCall});
  EXPECT_EQ(CopyMany(4), "+---");
  EXPECT_EQ(destination_, std::byte{2});
}

TEST_F(FaultyDeviceTest, OutOfMemoryLastsFromItsCallOn) {
  faulty_->Inject(OutOfMemory(2));
  EXPECT_EQ(Call(CallKind::kAllocatePinned), std::nullopt);
  for (int i = 0; i < 2; ++i) {
    const std::optional<Error> error = Call(CallKind::kAllocatePinned);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code, ErrorCode::kResourceExhausted);
    EXPECT_EQ(error->device_code, 0);
  }
}

TEST_F(FaultyDeviceTest, TheFaultThatWasInjectedFirstStrikes) {
  faulty_->Inject({.kind = CallKind::kCopyAsync, .error = {ErrorCode::kDevice, 1, "First."}});
  faulty_->Inject({.kind = CallKind::kCopyAsync, .error = {ErrorCode::kDevice, 2, "Second."}});
  EXPECT_EQ(Copy(1).error().message, "First.");
}

TEST_F(FaultyDeviceTest, ClearingFaultsHealsALostDeviceAndKeepsTheCounts) {
  faulty_->Inject({.kind = CallKind::kCopyAsync, .span = FaultSpan::kSticky});
  EXPECT_EQ(CopyMany(2), "--");
  faulty_->ClearFaults();
  EXPECT_EQ(CopyMany(2), "++");
  EXPECT_EQ(faulty_->CallCount(CallKind::kCopyAsync), 4u);
  EXPECT_EQ(faulty_->FaultCount(), 2u);
}

TEST_F(FaultyDeviceTest, AHookRunsBeforeEachCallOfItsKindAndMayInjectItsFault) {
  std::vector<uint64_t> calls;
  std::byte seen{9};
  faulty_->SetHook(CallKind::kCopyAsync, [&](uint64_t call) {
    calls.push_back(call);
    seen = destination_;
    if (call == 2) faulty_->Inject({.kind = CallKind::kCopyAsync, .call = 2});
  });
  EXPECT_EQ(Call(CallKind::kRecord), std::nullopt);
  EXPECT_EQ(CopyMany(1), "+");
  EXPECT_EQ(seen, std::byte{0}) << "the hook ran after its call";
  EXPECT_FALSE(Copy(2));
  faulty_->SetHook(CallKind::kCopyAsync, nullptr);
  EXPECT_TRUE(Copy(3));
  EXPECT_EQ(calls, (std::vector<uint64_t>{1, 2}));
}

// Thread 1 is inside a copy that blocks; thread 2's calls pass; then the copy goes on.
TEST_F(FaultyDeviceTest, ABlockedCallHoldsBackNoOtherCall) {
  std::atomic<bool> entered{false}, released{false};
  faulty_->SetHook(CallKind::kCopyAsync, [&](uint64_t) {
    entered = true;
    entered.notify_all();
    released.wait(false);
  });
  std::thread blocked([&] { EXPECT_TRUE(Copy(1)); });
  entered.wait(false);
  EXPECT_EQ(Call(CallKind::kRecord), std::nullopt);
  EXPECT_EQ(faulty_->CallCount(CallKind::kCopyAsync), 1u);
  EXPECT_EQ(destination_, std::byte{0});
  released = true;
  released.notify_all();
  blocked.join();
  EXPECT_EQ(destination_, std::byte{1});
}

TEST_F(FaultyDeviceTest, ThreadsTogetherMeetAFaultOfOneCallOnce) {
  faulty_->Inject({.kind = CallKind::kQuery, .call = 500});
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int call = 0; call < 250; ++call) failures += faulty_->Query(event_) ? 0 : 1;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 1);
  EXPECT_EQ(faulty_->CallCount(CallKind::kQuery), 1000u);
}

TEST_F(FaultyDeviceTest, InAForkedChildTheDeviceInsideRefuses) {
  faulty_->Inject({.kind = CallKind::kCopyAsync});
  const pid_t child = fork();
  if (child == 0) {
    const Expected<void> copy = Copy(1);
    _exit(!copy && copy.error().code == ErrorCode::kFailedPrecondition ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(FaultyDevice, WithoutADeviceInsideThereIsNone) {
  EXPECT_EQ(FaultyDevice::Create(nullptr), nullptr);
}

}  // namespace
}  // namespace h2d
