#include "h2d/device/argument_checks.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <memory>
#include <string>
#include <utility>

namespace h2d {
namespace {

class NullOwner final : public HandleOwner {
 public:
  void DestroyEvent(uint64_t) noexcept override {}
  void ReleasePinned(std::byte*, uint64_t) noexcept override {}
};

class ArgumentChecks : public testing::Test {
 protected:
  static constexpr uint64_t kTag = 7;

  static Stream StreamOf(uint64_t tag, StreamKind kind = StreamKind::kOrdinary) {
    return Stream::ForBackend(nullptr, kind, 1, tag);
  }
  static void ExpectInvalid(const Expected<void>& result, const std::string& message) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(result.error().message, message);
  }

  std::shared_ptr<NullOwner> owner_ = std::make_shared<NullOwner>();
  DeviceIdentity self_{owner_.get(), kTag};
  Stream stream_ = StreamOf(kTag);
  std::array<std::byte, 8> bytes_{};
  DevicePtr there_{uint64_t{4096}};
};

TEST_F(ArgumentChecks, SoundArgumentsPass) {
  Event event = Event::ForBackend(owner_, 1);
  const Event* const events[] = {&event};
  const CopyEntry entries[] = {{there_, bytes_}};
  EXPECT_TRUE(CheckProcess(self_));
  EXPECT_TRUE(CheckAllocatePinned(self_, 1));
  EXPECT_TRUE(CheckCopyAsync(self_, there_, bytes_, stream_));
  EXPECT_TRUE(CheckCopyBatchAsync(self_, entries, stream_));
  EXPECT_TRUE(CheckRecord(self_, event, stream_));
  EXPECT_TRUE(CheckWaitEvent(self_, stream_, event));
  EXPECT_TRUE(CheckQuery(self_, event));
  EXPECT_TRUE(CheckWaitAny(self_, events));
  EXPECT_TRUE(CheckWaitAny(self_, {}));
  EXPECT_TRUE(CheckInspect(self_, stream_));
}

TEST_F(ArgumentChecks, ACopyOfNoBytesPassesWithNullAddresses) {
  EXPECT_TRUE(CheckCopyAsync(self_, DevicePtr(), {}, stream_));
}

TEST_F(ArgumentChecks, ACopyNeedsBothAddressesAndEndsWithinTheAddressSpace) {
  ExpectInvalid(CheckCopyAsync(self_, DevicePtr(), bytes_, stream_),
                "The copy of 8 bytes has a null destination.");
  const std::span<const std::byte> null_source(static_cast<const std::byte*>(nullptr), 8);
  ExpectInvalid(CheckCopyAsync(self_, there_, null_source, stream_),
                "The copy of 8 bytes has a null source.");
  const DevicePtr last(std::numeric_limits<uint64_t>::max() - 7);
  ExpectInvalid(CheckCopyAsync(self_, last, bytes_, stream_),
                "The copy of 8 bytes to the address 18446744073709551608 ends beyond the last "
                "address.");
  EXPECT_TRUE(CheckCopyAsync(self_, last, std::span(bytes_).first(7), stream_));
}

TEST_F(ArgumentChecks, AStreamOfAnotherDeviceIsRefusedByEveryMethodThatTakesOne) {
  const std::string message =
      "The stream belongs to the device with the tag 8, and was given to the device with the tag "
      "7.";
  const Stream foreign = StreamOf(8);
  Event event = Event::ForBackend(owner_, 1);
  const CopyEntry entries[] = {{there_, bytes_}};
  ExpectInvalid(CheckCopyAsync(self_, there_, bytes_, foreign), message);
  ExpectInvalid(CheckCopyAsync(self_, there_, {}, foreign), message);
  ExpectInvalid(CheckCopyBatchAsync(self_, entries, foreign), message);
  ExpectInvalid(CheckRecord(self_, event, foreign), message);
  ExpectInvalid(CheckWaitEvent(self_, foreign, event), message);
  ExpectInvalid(CheckInspect(self_, foreign), message);
}

TEST_F(ArgumentChecks, AForeignOrMovedFromEventIsRefusedByEveryMethodThatTakesOne) {
  Event foreign = Event::ForBackend(std::make_shared<NullOwner>(), 1);
  Event moved_from = Event::ForBackend(owner_, 1);
  Event taken = std::move(moved_from);
  const std::pair<Event*, const char*> cases[] = {
      {&foreign, " belongs to another device."},
      {&moved_from, " was moved from, and names nothing."}};
  for (const auto& [event, reason] : cases) {
    const std::string message = std::string("The event") + reason;
    ExpectInvalid(CheckRecord(self_, *event, stream_), message);
    ExpectInvalid(CheckWaitEvent(self_, stream_, *event), message);
    ExpectInvalid(CheckQuery(self_, *event), message);
    const Event* const events[] = {&taken, event};
    ExpectInvalid(CheckWaitAny(self_, events),
                  std::string("Event 1 of 2 (counted from 0)") + reason);
  }
}

TEST_F(ArgumentChecks, ANullPointerAmongEventsIsRefused) {
  const Event* const events[] = {nullptr};
  ExpectInvalid(CheckWaitAny(self_, events), "Event 0 of 1 (counted from 0) is a null pointer.");
}

TEST_F(ArgumentChecks, ABatchNeedsEntriesWithBytesAndAStreamThatIsNotLegacy) {
  const CopyEntry good{there_, bytes_};
  const CopyEntry entries[] = {good};
  const CopyEntry no_bytes[] = {good, {there_, {}}};
  const CopyEntry no_destination[] = {good, good, {DevicePtr(), bytes_}};
  ExpectInvalid(CheckCopyBatchAsync(self_, {}, stream_), "The batch has no entries.");
  ExpectInvalid(CheckCopyBatchAsync(self_, no_bytes, stream_),
                "Batch entry 1 of 2 (counted from 0) has no bytes.");
  ExpectInvalid(CheckCopyBatchAsync(self_, no_destination, stream_),
                "Batch entry 2 of 3 (counted from 0) of 8 bytes has a null destination.");
  ExpectInvalid(CheckCopyBatchAsync(self_, entries, StreamOf(kTag, StreamKind::kLegacyDefault)),
                "A batch cannot be enqueued on the legacy default stream.");
}

TEST_F(ArgumentChecks, PinnedMemoryOfNoBytesIsRefused) {
  ExpectInvalid(CheckAllocatePinned(self_, 0), "Pinned memory of 0 bytes cannot be allocated.");
}

}  // namespace
}  // namespace h2d
