// Streams, copies and memory.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <span>
#include <thread>
#include <vector>

#include "h2d/device/conformance/conformance_test.h"

namespace h2d::conformance {
namespace {

using Streams = ConformanceTest;
using HeldStreams = ConformanceTest;

TEST_F(Streams, ACopyBringsEveryByteAndTouchesNoOther) {
  const Stream stream = NewStream();
  constexpr uint64_t kGuard = 64;
  for (const uint64_t bytes : {1, 64, 40'000, (1 << 20) + 3}) {
    SCOPED_TRACE(bytes);
    const DevicePtr ptr = NewMemory(bytes + 2 * kGuard);
    Must(harness().Fill(ptr, std::byte{0xee}, bytes + 2 * kGuard, stream));
    const std::vector<std::byte> values = Pattern(bytes, 7);
    Must(device().CopyAsync(ptr + kGuard, NewPinned(values).bytes().first(bytes), stream));
    std::vector<std::byte> expected(bytes + 2 * kGuard, std::byte{0xee});
    std::ranges::copy(values, expected.begin() + kGuard);
    EXPECT_TRUE(ReadBack(ptr, bytes + 2 * kGuard, stream) == expected);
  }
}

TEST_F(HeldStreams, CopiesOfOneStreamRunInOrder) {
  const Stream stream = NewHeldStream();
  const DevicePtr ptr = NewMemory(256);
  for (uint32_t i = 0; i < 10; ++i) {
    Must(device().CopyAsync(ptr, NewPinned(Pattern(256, i)).bytes(), stream));
  }
  Must(harness().Release(stream));
  EXPECT_TRUE(ReadBack(ptr, 256, stream) == Pattern(256, 9));
}

TEST_F(Streams, APageableSourceArrives) {
  const Stream stream = NewStream();
  for (const uint64_t bytes : {64, 100'000}) {
    const DevicePtr ptr = NewMemory(bytes);
    const std::vector<std::byte> values = Pattern(bytes, 3);
    Must(device().CopyAsync(ptr, values, stream));
    EXPECT_TRUE(ReadBack(ptr, bytes, stream) == values);
  }
}

TEST_F(Streams, ACopyOfNoBytesDoesNothing) {
  const Stream stream = NewStream();
  const DevicePtr ptr = NewMemory(64);
  Must(device().CopyAsync(ptr, {}, stream));
  Must(device().CopyAsync(DevicePtr(), {}, stream));
  EXPECT_TRUE(ReadBack(ptr, 64, stream) == std::vector<std::byte>(64));
}

TEST_F(HeldStreams, AHeldStreamHoldsNoOther) {
  const Stream held = NewHeldStream();
  const Event on_held = CopyOn(held);
  RunAround();
  EXPECT_TRUE(IsPending(on_held));
  Must(harness().Release(held));
  Await(on_held);
}

TEST_F(Streams, AnOrdinaryStreamHasOneIdentityInAllThreads) {
  const Stream a = NewStream();
  const Stream b = NewStream();
  const StreamStatus here = Must(device().Inspect(a));
  EXPECT_NE(here.id, 0U);
  EXPECT_NE(here.id, Must(device().Inspect(b)).id);
  Expected<StreamStatus> there = FailedPrecondition("not asked");
  std::thread([&] { there = device().Inspect(a); }).join();
  EXPECT_EQ(Must(there).id, here.id);
}

TEST_F(Streams, ThePerThreadStreamIsAnotherInEachThread) {
  const Stream stream = harness().PerThreadStream();
  std::set<StreamId> ids = {Must(device().Inspect(stream)).id};
  for (int i = 0; i < 3; ++i) {
    Expected<StreamStatus> status = FailedPrecondition("not asked");
    // Each has ended before the next begins, so identities must not follow the thread's handle.
    std::thread([&] { status = device().Inspect(stream); }).join();
    ids.insert(Must(status).id);
  }
  EXPECT_EQ(ids.size(), 4U);
  EXPECT_FALSE(ids.contains(0));
}

TEST_F(Streams, TheLegacyStreamIsOneInAllThreads) {
  const Stream stream = harness().LegacyStream();
  const StreamStatus here = Must(device().Inspect(stream));
  Expected<StreamStatus> there = FailedPrecondition("not asked");
  std::thread([&] { there = device().Inspect(stream); }).join();
  EXPECT_EQ(Must(there).id, here.id);
  EXPECT_NE(here.id, 0U);
  EXPECT_NE(here.id, Must(device().Inspect(harness().PerThreadStream())).id);
}

TEST_F(Streams, ANewStreamIsNeverTakenForADestroyedOne) {
  std::set<StreamId> ids;
  for (int i = 0; i < 50; ++i) {
    const Stream stream = NewStream();
    ids.insert(Must(device().Inspect(stream)).id);
    Must(harness().DestroyStream(stream));
  }
  EXPECT_EQ(ids.size(), 50U);
}

TEST_F(Streams, TheDefaultStreamsCarryCopies) {
  for (const Stream& stream : {harness().LegacyStream(), harness().PerThreadStream()}) {
    const DevicePtr ptr = NewMemory(64);
    const std::vector<std::byte> values = Pattern(64, 5);
    Must(device().CopyAsync(ptr, NewPinned(values).bytes(), stream));
    Await(RecordOn(stream));
    EXPECT_TRUE(ReadBack(ptr, 64, stream) == values);
  }
}

TEST_F(HeldStreams, TheLegacyStreamWaitsForBlockingStreamsOnly) {
  const Stream held_apart = NewHeldStream(StreamFlavor::kNonBlocking);
  const Event on_held_apart = CopyOn(held_apart);
  Await(CopyOn(harness().LegacyStream()));
  EXPECT_TRUE(IsPending(on_held_apart));
  Must(harness().Release(held_apart));

  const Stream held = NewHeldStream(StreamFlavor::kBlocking);
  const Event on_held = CopyOn(held);
  const Event on_legacy = CopyOn(harness().LegacyStream());
  RunAround();
  EXPECT_TRUE(IsPending(on_legacy));
  Must(harness().Release(held));
  Await(on_legacy);
  Await(on_held);
}

TEST_F(HeldStreams, BlockingStreamsWaitForTheLegacyStream) {
  const Stream held = NewHeldStream(StreamFlavor::kBlocking);
  const Stream blocking = NewStream(StreamFlavor::kBlocking);
  const Stream apart = NewStream(StreamFlavor::kNonBlocking);
  const Event on_held = CopyOn(held);
  const Event on_legacy = CopyOn(harness().LegacyStream());
  const Event on_blocking = CopyOn(blocking);
  Await(CopyOn(apart));
  EXPECT_TRUE(IsPending(on_blocking));
  Must(harness().Release(held));
  Await(on_blocking);
  Await(on_legacy);
  Await(on_held);
}

using Memory = ConformanceTest;
using DeviceMemory = ConformanceTest;

TEST_F(Memory, PinnedMemoryIsAlignedAndItsOwners) {
  const PinnedBuffer& a = NewPinned(Pattern(100, 1));
  const PinnedBuffer& b = NewPinned(Pattern(100, 2));
  for (const PinnedBuffer* buffer : {&a, &b}) {
    EXPECT_EQ(buffer->bytes().size(), 100U);
    const auto address = reinterpret_cast<std::uintptr_t>(buffer->bytes().data());
    EXPECT_EQ(address % PinnedBuffer::kAlignment, 0U);
  }
  EXPECT_TRUE(std::ranges::equal(a.bytes(), Pattern(100, 1)));
  EXPECT_TRUE(std::ranges::equal(b.bytes(), Pattern(100, 2)));
}

TEST_F(Memory, NoBytesOfPinnedMemoryAreRefused) {
  EXPECT_EQ(CodeOf(device().AllocatePinned(0)), ErrorCode::kInvalidArgument);
}

TEST_F(Memory, MoreThanTheMachineHasIsRefusedAndHurtsNothing) {
  for (const uint64_t bytes : {uint64_t{1} << 50, std::numeric_limits<uint64_t>::max()}) {
    EXPECT_EQ(CodeOf(device().AllocatePinned(bytes)), ErrorCode::kResourceExhausted);
  }
  RunAround();
}

TEST_F(Memory, TrimLeavesMemoryInUseAlone) {
  const PinnedBuffer& kept = NewPinned(Pattern(5000, 1));
  { const PinnedBuffer released = Must(device().AllocatePinned(5000)); }
  Must(device().Trim());
  EXPECT_TRUE(std::ranges::equal(kept.bytes(), Pattern(5000, 1)));
  const Stream stream = NewStream();
  const DevicePtr ptr = NewMemory(5000);
  Must(device().CopyAsync(ptr, kept.bytes(), stream));
  EXPECT_TRUE(ReadBack(ptr, 5000, stream) == Pattern(5000, 1));
}

TEST_F(HeldStreams, AllocationAndReleaseWaitForNothing) {
  const Stream held = NewHeldStream();
  const Event on_held = CopyOn(held);
  for (const uint64_t bytes : {64, 1 << 16, 1 << 20}) {
    const PinnedBuffer buffer = Must(device().AllocatePinned(bytes));
  }
  EXPECT_TRUE(IsPending(on_held));
  Must(harness().Release(held));
  Await(on_held);
}

TEST_F(Memory, KindsAreToldApartForRangesAnywhere) {
  const PinnedBuffer& pinned = NewPinned(Pattern(4096, 1));
  const std::vector<std::byte> pageable(4096);
  EXPECT_EQ(Must(device().KindOf(pinned.bytes())), MemoryKind::kPinned);
  EXPECT_EQ(Must(device().KindOf(pinned.bytes().subspan(17, 1000))), MemoryKind::kPinned);
  EXPECT_EQ(Must(device().KindOf(pinned.bytes().last(1))), MemoryKind::kPinned);
  EXPECT_EQ(Must(device().KindOf(pinned.bytes().first(0))), MemoryKind::kPageable);
  EXPECT_EQ(Must(device().KindOf(std::span(pageable).subspan(17))), MemoryKind::kPageable);
  EXPECT_EQ(Must(device().KindOf({})), MemoryKind::kPageable);
}

// A device may serve a request from a larger block, but not from a cache that is empty, and not one
// of whole pages with more of them.
TEST_F(Memory, ARangeThatIsPinnedInPartIsPageable) {
  Must(device().Trim());
  const std::byte* const start = NewPinned(Pattern(4096, 1)).bytes().data();
  EXPECT_EQ(Must(device().KindOf({start, 4096})), MemoryKind::kPinned);
  EXPECT_EQ(Must(device().KindOf({start, 4097})), MemoryKind::kPageable);
  EXPECT_EQ(Must(device().KindOf({start + 4095, 2})), MemoryKind::kPageable);
}

TEST_F(DeviceMemory, DeviceMemoryIsNoHostMemory) {
  const auto* const memory = static_cast<const std::byte*>(NewMemory(64).pointer());
  EXPECT_EQ(CodeOf(device().KindOf({memory, 64})), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace h2d::conformance
