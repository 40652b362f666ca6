// Pinned memory: bounded, reused whatever the sizes, grown without waiting, given back whole.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>
#include <vector>

#include "h2d/device/faulty/faulty_device.h"
#include "h2d/device/host/host_device.h"
#include "h2d/tests/scenarios/support/scenario_test.h"

namespace h2d::scenarios {
namespace {

using Kind = CopyOutcome::Kind;

class Memory : public ScenarioTest {
 protected:
  using ScenarioTest::ScenarioTest;

  const Stream stream_ = fake().NewStream("plan");
};
INSTANTIATE_TEST_SUITE_P(All, Memory, ::testing::ValuesIn(Settings()), NameOf);

// Scenario 24. Requests of every size, growing, shrinking and mixed: what is reserved stays within
// the limit, and what small ones left behind serves large ones.
TEST_P(Memory, RequestsOfAllSizesShareABoundedAmount) {
  StagerOptions options;
  options.slot_bytes = 256;
  options.initial_slots = 1;
  options.max_slots = 16;
  options.max_pinned_bytes = std::max<uint64_t>(bytes() / 256 * 256 + 256, 16 * 256);
  MakeStager(options);
  const auto check = [&](uint64_t size, int32_t tag) {
    const Destination to = NewDestination(size);
    const Values values = ValuesOf(tag, size);
    const auto outcome = stager().Copy(to, values, stream_);
    ASSERT_TRUE(outcome) << size << " elements: " << outcome.error().ToString();
    if (tag % 8 == 0) ExpectRead(stream_, to, values);
    ASSERT_LE(stager().stats().pinned_bytes, options.max_pinned_bytes);
  };
  const uint64_t stride = std::max<uint64_t>(1, count() / 16);
  int32_t tag = 0;
  for (uint64_t size = 1; size <= count(); size += stride) check(size, ++tag);
  for (uint64_t size = count(); size > stride; size -= stride) check(size, ++tag);
  for (uint64_t i = 0; i < 32; ++i) check(1 + MixBits(GetParam().seed * 100 + i) % count(), ++tag);
  check(options.max_pinned_bytes / sizeof(int32_t), 8);
  EXPECT_LE(stager().stats().pinned_bytes_most, options.max_pinned_bytes);
}

// Scenario 24. What small copies left idle serves a large one also while another of their stream is
// still in flight.
TEST_P(Memory, IdleMemoryOfAStreamThatStandsStillServesAnotherSize) {
  constexpr uint64_t kSmall = 256 / sizeof(int32_t);
  MakeStager({.slot_bytes = 256, .initial_slots = 4, .max_slots = 16, .max_pinned_bytes = 1024});
  // A device may say for a while that a copy is pending.
  const auto copy = [&](uint64_t size, int32_t tag) {
    const Destination to = NewDestination(size);
    auto outcome = stager().TryCopy(to, ValuesOf(tag, size), stream_);
    for (int i = 0; i < 8 && outcome && outcome->kind == Kind::kWouldBlock; ++i)
      outcome = stager().TryCopy(to, ValuesOf(tag, size), stream_);
    ExpectKind(outcome, Kind::kIssued);
    return to;
  };
  for (int32_t i = 0; i < 3; ++i) copy(kSmall, i);
  ASSERT_TRUE(fake().SynchronizeStream(stream_));
  ASSERT_TRUE(fake().Hold(stream_));
  copy(kSmall, 3);
  const Destination large = copy(3 * kSmall, 4);
  ExpectRead(stream_, large, ValuesOf(4, 3 * kSmall));
  EXPECT_EQ(stager().stats().growths, 0u);
  ASSERT_TRUE(fake().Release(stream_));
}

// Scenario 26. Growth behind a busy device: no call waits for it, nothing is freed, and no slot
// that a copy reads is given back.
TEST_P(Memory, GrowthNeitherWaitsNorFreesWhileTheDeviceIsBusy) {
  StagerOptions options = RingOf(4 * slots());
  options.initial_slots = 1;
  const auto faulty = FaultyDevice::Create(shared_fake());
  MakeStager(options, faulty);
  ASSERT_TRUE(fake().Hold(stream_));
  const uint64_t waits = fake().counters().waits;
  for (uint32_t i = 0; i < options.max_slots; ++i) {
    const Destination to = NewDestination();
    ExpectIssued(stager().Copy(to, ValuesOf(static_cast<int32_t>(i)), stream_));
    ExpectRead(stream_, to, ValuesOf(static_cast<int32_t>(i)));
  }
  EXPECT_GT(stager().stats().growths, 0u);
  EXPECT_EQ(stager().stats().slabs_retired, 0u);
  EXPECT_EQ(fake().counters().waits, waits);
  EXPECT_EQ(fake().counters().pinned_releases, 0u);
  EXPECT_EQ(faulty->CallCount(CallKind::kTrim), 0u);
  ASSERT_TRUE(fake().Release(stream_));
}

// Scenario 27. Whichever of a constructor's allocations fails, nothing is left outstanding.
TEST_P(Memory, AnyFailureInTheConstructorLeavesNothingBehind) {
  StagerOptions options;
  options.slot_bytes = uint64_t{768} << 10;  // a slab each
  options.initial_slots = 3;
  for (const CallKind kind : {CallKind::kAllocatePinned, CallKind::kCreateEvent}) {
    uint64_t failed = 0;
    for (uint64_t call = 1;; ++call) {
      const auto faulty = FaultyDevice::Create(shared_fake());
      faulty->Inject({.kind = kind, .call = call, .error = {ErrorCode::kResourceExhausted, 2, {}}});
      const auto stager = PinnedStager::Create(faulty, options);
      if (faulty->FaultCount() == 0) break;
      ++failed;
      ASSERT_FALSE(stager);
      EXPECT_EQ(stager.error().code, ErrorCode::kResourceExhausted);
      const FakeCounters counters = fake().counters();
      EXPECT_EQ(counters.pinned_bytes, counters.pinned_cached_bytes);
      EXPECT_EQ(counters.events_created, counters.events_destroyed);
    }
    EXPECT_EQ(failed, options.initial_slots) << ToString(kind);
  }
}

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define H2D_THREAD_SANITIZER
#endif
#endif

// Scenario 30. Amounts beyond 32 bits: 5 GiB asked of a mirror in hits of 64 MiB each.
TEST(MemoryOnTheHost, MoreThanFourGiBAreAccountedInFull) {
#ifdef H2D_THREAD_SANITIZER
  GTEST_SKIP() << "compares 5 GiB on one thread, which takes minutes when each byte is watched";
#endif
  constexpr uint64_t kBytes = uint64_t{64} << 20;
  constexpr uint64_t kHits = 80;
  const auto device = HostDevice::Create();
  auto stager = PinnedStager::Create(device).value();
  std::vector<uint64_t> memory(kBytes / sizeof(uint64_t), 7);
  const std::vector<uint64_t> values = memory;
  const Stream stream = device->NewStream();
  auto mirror = stager->NewMirror(Destination::Of(memory.data(), memory.size())).value();
  ASSERT_TRUE(mirror.Record(values, stream));
  for (uint64_t i = 0; i < kHits; ++i) {
    ASSERT_EQ(stager->Copy(mirror, values, stream).value().kind, Kind::kSkipped);
  }
  EXPECT_EQ(stager->stats().bytes_asked, kHits * kBytes);
}

// A machine whose pinned memory ends before the stager's own limit does.
FakeOptions Scarce() {
  FakeOptions options;
  options.pinned_limit_bytes = uint64_t{1} << 20;
  return options;
}

class ScarceMemory : public ScenarioTest {
 protected:
  ScarceMemory() : ScenarioTest(Scarce()) {}

  static StagerOptions Hungry(OnGrowthFailure on_failure) {
    StagerOptions options;
    options.slot_bytes = uint64_t{512} << 10;
    options.initial_slots = 1;
    options.max_slots = 8;
    options.on_growth_failure = on_failure;
    return options;
  }
  Values Large(int32_t tag) const { return ValuesOf(tag, (uint64_t{512} << 10) / sizeof(int32_t)); }
  Destination ForLarge() { return NewDestination((uint64_t{512} << 10) / sizeof(int32_t)); }

  const Stream stream_ = fake().NewStream("plan");
};
INSTANTIATE_TEST_SUITE_P(All, ScarceMemory,
                         ::testing::Values(Setting{0, 2, 16}, Setting{1, 2, 16}, Setting{2, 2, 16}),
                         NameOf);

// Scenario 28. A container's limit on pinned memory: a clear error, after which what is there goes
// on being used. Scenario 31: what could not be had is not counted as used.
TEST_P(ScarceMemory, AMachineWithoutMorePinnedMemoryIsAClearError) {
  MakeStager(Hungry(OnGrowthFailure::kError));
  ASSERT_TRUE(fake().Hold(stream_));
  uint64_t issued = 0;
  for (; issued < 8; ++issued) {
    const auto outcome = stager().TryCopy(ForLarge(), Large(1), stream_);
    if (outcome) continue;
    ExpectError(outcome, ErrorCode::kResourceExhausted);
    break;
  }
  EXPECT_EQ(issued, 2u);
  const StagerStats stats = stager().stats();
  EXPECT_EQ(stats.growth_failures, 1u);
  EXPECT_EQ(stats.pinned_bytes, uint64_t{1} << 20);
  EXPECT_EQ(fake().counters().pinned_bytes, uint64_t{1} << 20);
  ASSERT_TRUE(fake().Release(stream_));
  ASSERT_TRUE(fake().SynchronizeStream(stream_));
  const Destination to = ForLarge();
  ExpectKind(stager().Copy(to, Large(2), stream_), Kind::kIssued);
  ExpectRead(stream_, to, Large(2));
}

// Scenario 28. The same machine, told to make do with what there is: copies wait for a slot, and
// the failures are counted.
TEST_P(ScarceMemory, ToldToMakeDoACopyWaitsAndTheFailureIsCounted) {
  MakeStager(Hungry(OnGrowthFailure::kWait));
  for (int32_t i = 0; i < 6; ++i) {
    const Destination to = ForLarge();
    ExpectKind(stager().Copy(to, Large(i), stream_), Kind::kIssued);
    ExpectRead(stream_, to, Large(i));
  }
  ASSERT_TRUE(fake().Hold(stream_));
  for (int i = 0; i < 3; ++i) {
    const auto outcome = stager().TryCopy(ForLarge(), Large(9), stream_);
    ASSERT_TRUE(outcome) << outcome.error().ToString();
  }
  ExpectKind(stager().TryCopy(ForLarge(), Large(9), stream_), Kind::kWouldBlock);
  EXPECT_GT(stager().stats().growth_failures, 0u);
  EXPECT_EQ(stager().stats().errors, 0u);
  ASSERT_TRUE(fake().Release(stream_));
}

// Scenarios 29 and 31. A growth that failed leaves nothing behind: no pending error for the next
// call, no bytes counted that are not there, so that the limit can later be used to the last byte.
TEST_P(Memory, AFailedGrowthIsNeitherRepeatedNorCountedAsUsed) {
  StagerOptions options = RingOf(slots() + 1);
  options.initial_slots = 1;
  const auto faulty = FaultyDevice::Create(shared_fake());
  MakeStager(options, faulty);
  ASSERT_TRUE(fake().Hold(stream_));
  ExpectIssued(stager().TryCopy(NewDestination(), ValuesOf(0), stream_));
  const uint64_t pinned = stager().stats().pinned_bytes;
  for (uint64_t i = 1; i <= 5; ++i) {
    faulty->Inject(OutOfMemory());
    ExpectError(stager().TryCopy(NewDestination(), ValuesOf(1), stream_),
                ErrorCode::kResourceExhausted);
    faulty->ClearFaults();
    EXPECT_EQ(stager().stats().pinned_bytes, pinned);
    EXPECT_EQ(stager().stats().growth_failures, i);
  }
  for (uint32_t i = 1; i < options.max_slots; ++i) {
    const Destination to = NewDestination();
    ExpectIssued(stager().TryCopy(to, ValuesOf(2), stream_));
    ExpectRead(stream_, to, ValuesOf(2));
  }
  EXPECT_EQ(stager().stats().pinned_bytes, options.max_pinned_bytes);
  ASSERT_TRUE(fake().Release(stream_));
}

}  // namespace
}  // namespace h2d::scenarios
