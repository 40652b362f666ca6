// Two devices in one process. Skipped where there is one.
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "h2d/device/conformance/conformance_test.h"

namespace h2d::conformance {
namespace {

class TwoDevices : public ConformanceTest {
 protected:
  void SetUp() override {
    ConformanceTest::SetUp();
    if (harness().Second() == nullptr) GTEST_SKIP() << "there is no second device";
  }
  Device& second_device() { return *second().device(); }
};

TEST_F(TwoDevices, StreamsOfBothHaveDistinctIdentities) {
  const Stream first = NewStream();
  const Stream other = Must(second().NewStream(StreamFlavor::kNonBlocking));
  EXPECT_NE(first.device_tag(), other.device_tag());
}

TEST_F(TwoDevices, AStreamOfTheOtherDeviceIsRefused) {
  const Stream foreign = Must(second().NewStream(StreamFlavor::kNonBlocking));
  const PinnedBuffer& source = NewPinned(Pattern(64, 1));
  const CopyEntry entry = {NewMemory(64), source.bytes()};
  Event event = NewEvent();
  EXPECT_EQ(CodeOf(device().CopyAsync(entry.destination, entry.source, foreign)),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(device().CopyBatchAsync(std::span(&entry, 1), foreign)),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(device().Record(event, foreign)), ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(device().WaitEvent(foreign, event)), ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(device().Inspect(foreign)), ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(device().Inspect(second().LegacyStream())), ErrorCode::kInvalidArgument);
}

TEST_F(TwoDevices, AnEventOfTheOtherDeviceIsRefused) {
  const Stream stream = NewStream();
  Event foreign = Must(second_device().CreateEvent());
  const Event* const only = &foreign;
  EXPECT_EQ(CodeOf(device().Record(foreign, stream)), ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(device().Query(foreign)), ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(device().WaitEvent(stream, foreign)), ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(device().WaitAny(std::span(&only, 1), {})), ErrorCode::kInvalidArgument);
}

TEST_F(TwoDevices, PinnedMemoryOfOneServesBoth) {
  const PinnedBuffer& source = NewPinned(Pattern(40'000, 8));
  EXPECT_EQ(Must(second_device().KindOf(source.bytes())), MemoryKind::kPinned);
  const Stream here = NewStream();
  const Stream there = Must(second().NewStream(StreamFlavor::kNonBlocking));
  const DevicePtr ptr_here = NewMemory(40'000);
  const DevicePtr ptr_there = Must(second().AllocateDevice(40'000));
  Must(device().CopyAsync(ptr_here, source.bytes(), here));
  Must(second_device().CopyAsync(ptr_there, source.bytes(), there));
  EXPECT_TRUE(ReadBack(ptr_here, 40'000, here) == Pattern(40'000, 8));
  EXPECT_TRUE(Must(second().ReadBack(ptr_there, 40'000, there)) == Pattern(40'000, 8));
}

TEST_F(TwoDevices, AHeldDeviceHoldsNotTheOther) {
  const Stream held = NewHeldStream();
  const Event on_held = CopyOn(held);
  const Stream there = Must(second().NewStream(StreamFlavor::kNonBlocking));
  Event on_there = Must(second_device().CreateEvent());
  Must(second_device().Record(on_there, there));
  const Event* const only = &on_there;
  EXPECT_EQ(
      Must(second_device().WaitAny(std::span(&only, 1), {.timeout = std::chrono::seconds(20)})),
      0U);
  EXPECT_TRUE(IsPending(on_held));
  Must(harness().Release(held));
  Await(on_held);
}

TEST_F(TwoDevices, EachHasItsOwnDefaultStreams) {
  for (const bool legacy : {true, false}) {
    const Stream here = legacy ? harness().LegacyStream() : harness().PerThreadStream();
    const Stream there = legacy ? second().LegacyStream() : second().PerThreadStream();
    const DevicePtr ptr_here = NewMemory(64);
    const DevicePtr ptr_there = Must(second().AllocateDevice(64));
    const PinnedBuffer& source = NewPinned(Pattern(64, 2));
    Must(device().CopyAsync(ptr_here, source.bytes(), here));
    Must(second_device().CopyAsync(ptr_there, source.bytes(), there));
    EXPECT_TRUE(ReadBack(ptr_here, 64, here) == Pattern(64, 2));
    EXPECT_TRUE(Must(second().ReadBack(ptr_there, 64, there)) == Pattern(64, 2));
  }
}

}  // namespace
}  // namespace h2d::conformance
