// A forked child inherits a stager that works no more: calls fail, and the end of every handle does
// nothing and does not hang (I9).
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "h2d/device/fake/fake_device.h"
#include "h2d/stager/pinned_stager.h"

namespace h2d {
namespace {

// What a parent holds when it forks: a copy in flight, a lease, a mirror that remembers a copy.
struct Inheritance {
  std::shared_ptr<FakeDevice> device = FakeDevice::Create();
  Stream stream = device->NewStream();
  DevicePtr memory = device->AllocateDevice(64).value_or(DevicePtr());
  std::unique_ptr<PinnedStager> stager;
  std::optional<H2DMirror> mirror;
  std::optional<SlotLease> lease;
  std::vector<int32_t> values = {1, 2, 3, 4};

  Inheritance() {
    auto made = PinnedStager::Create(device);
    if (!made) return;
    stager = std::move(*made);
    if (auto of = stager->NewMirror(Destination::Of<int32_t>(memory, 4)))
      mirror.emplace(std::move(*of));
    if (auto held = stager->Acquire(16)) lease.emplace(std::move(*held));
  }
};

bool IsRefused(const Error& error) { return error.code == ErrorCode::kFailedPrecondition; }

// Runs in the child; answers which check failed, 0 for none.
int ChecksOfChild(Inheritance& inherited) {
  const auto copy = inherited.stager->Copy(*inherited.mirror, inherited.values, inherited.stream);
  if (copy || !IsRefused(copy.error())) return 1;
  const auto plain = inherited.stager->TryCopy(Destination::Of<int32_t>(inherited.memory, 4),
                                               inherited.values, inherited.stream);
  if (plain || !IsRefused(plain.error())) return 2;
  const auto slot = inherited.stager->Acquire(16);
  if (slot || !IsRefused(slot.error())) return 3;
  const auto submitted =
      inherited.lease->Submit(Destination::Of<int32_t>(inherited.memory, 4), inherited.stream);
  if (submitted || !IsRefused(submitted.error())) return 4;
  const auto matches = inherited.mirror->Matches(inherited.values);
  if (matches || !IsRefused(matches.error())) return 5;
  const auto mirror = inherited.stager->NewMirror(Destination::Of<int32_t>(inherited.memory, 4));
  if (mirror || !IsRefused(mirror.error())) return 6;
  inherited.mirror->Invalidate();
  static_cast<void>(inherited.stager->stats());
  inherited.lease.reset();
  inherited.mirror.reset();
  inherited.stager.reset();
  inherited.device.reset();
  return 0;
}

int StatusOfChild(Inheritance& inherited) {
  const pid_t child = fork();
  if (child == 0) _exit(ChecksOfChild(inherited));
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

TEST(Fork, InTheChildCallsAreRefusedAndDestructorsDoNothing) {
  Inheritance inherited;
  ASSERT_TRUE(inherited.stager != nullptr && inherited.mirror && inherited.lease);
  ASSERT_TRUE(inherited.stager->Copy(*inherited.mirror, inherited.values, inherited.stream));
  ASSERT_TRUE(inherited.device->Hold(inherited.stream));
  inherited.values[0] = 9;
  ASSERT_TRUE(inherited.stager->Copy(*inherited.mirror, inherited.values, inherited.stream));

  const int status = StatusOfChild(inherited);
  EXPECT_TRUE(WIFEXITED(status)) << "the child ended by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0) << "this check of the child failed";
}

TEST(Fork, TheParentGoesOnAsBefore) {
  Inheritance inherited;
  ASSERT_TRUE(inherited.stager != nullptr && inherited.mirror && inherited.lease);
  EXPECT_EQ(StatusOfChild(inherited), 0);

  const auto copy = inherited.stager->Copy(*inherited.mirror, inherited.values, inherited.stream);
  ASSERT_TRUE(copy) << copy.error().ToString();
  EXPECT_EQ(copy->kind, CopyOutcome::Kind::kIssued);
  std::vector<int32_t> seen(4);
  ASSERT_TRUE(inherited.device->ReadBack(inherited.memory, std::as_writable_bytes(std::span(seen)),
                                         inherited.stream));
  EXPECT_EQ(seen, inherited.values);
  EXPECT_TRUE(inherited.device->hazards().empty());
}

}  // namespace
}  // namespace h2d
