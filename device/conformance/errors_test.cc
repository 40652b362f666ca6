// Errors are refusals with a reason, and leave the device as it was.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <limits>
#include <utility>

#include "h2d/device/conformance/conformance_test.h"

namespace h2d::conformance {
namespace {

using Errors = ConformanceTest;
using DeviceMemory = ConformanceTest;

TEST_F(Errors, ANullDestinationIsRefused) {
  const Stream stream = NewStream();
  const Expected<void> refused =
      device().CopyAsync(DevicePtr(), NewPinned(Pattern(64, 1)).bytes(), stream);
  EXPECT_EQ(CodeOf(refused), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(refused.error().message.ends_with('.')) << refused.error().message;
  RunAround();
}

TEST_F(Errors, ADestinationBeyondTheLastAddressIsRefused) {
  const DevicePtr last(std::numeric_limits<uint64_t>::max() - 10);
  EXPECT_EQ(CodeOf(device().CopyAsync(last, NewPinned(Pattern(64, 1)).bytes(), NewStream())),
            ErrorCode::kInvalidArgument);
  RunAround();
}

TEST_F(DeviceMemory, ACopyPastTheEndOfAnAllocationIsRefused) {
  constexpr uint64_t kBytes = 16 << 20;  // large enough to be an allocation of the driver's own
  const DevicePtr ptr = NewMemory(kBytes);
  EXPECT_EQ(CodeOf(device().CopyAsync(ptr + (kBytes - 4), NewPinned(Pattern(64, 1)).bytes(),
                                      NewStream())),
            ErrorCode::kInvalidArgument);
  RunAround();
}

// A driver does not survive a fork: the child hears so at once, and its destructors do nothing.
TEST_F(Errors, AForkedChildIsRefusedAndTheParentGoesOn) {
  const Stream stream = NewStream();
  Event event = NewEvent();
  const PinnedBuffer& source = NewPinned(Pattern(64, 1));
  const DevicePtr ptr = NewMemory(64);
  Device& inherited = device();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    int allowed = 0;
    const auto check = [&](const auto& answer) {
      if (answer || answer.error().code != ErrorCode::kFailedPrecondition) ++allowed;
    };
    check(inherited.CopyAsync(ptr, source.bytes(), stream));
    check(inherited.Record(event, stream));
    check(inherited.Query(event));
    check(inherited.WaitEvent(stream, event));
    check(inherited.AllocatePinned(64));
    check(inherited.CreateEvent());
    check(inherited.Inspect(stream));
    check(inherited.Trim());
    { const Event dies_here = std::move(event); }
    _exit(allowed);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  Must(device().CopyAsync(ptr, source.bytes(), stream));
  Must(device().Record(event, stream));
  Await(event);
}

}  // namespace
}  // namespace h2d::conformance
