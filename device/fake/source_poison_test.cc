// Under address sanitizer the source of a copy in flight is poisoned: a store that nobody announced
// dies where it is made. Whatever is legal and announced goes on as ever, in every build.
#include <gtest/gtest.h>

#include "h2d/device/fake/fake_device.h"
#include "h2d/device/fake/internal/address_sanitizer.h"
#include "h2d/device/fake/testing/fake_fixture.h"

namespace h2d {
namespace {

using fake_internal::kAddressSanitizer;
using testing::BytesOf;

class SourcePoison : public testing::FakeFixture {
 protected:
  SourcePoison() { Reset(FakeOptions()); }  // sources are poisoned
  std::span<const std::byte> Part(size_t begin, size_t bytes) const {
    return slot_.bytes().subspan(begin, bytes);
  }
};

using SourcePoisonDeathTest = SourcePoison;

TEST_F(SourcePoisonDeathTest, AStoreThatNobodyAnnouncedDiesWhereItIsMade) {
  if (!kAddressSanitizer) GTEST_SKIP() << "without address sanitizer it is found by comparing";
  Fill(slot_, 1);
  ASSERT_TRUE(Copy(a_, target_, slot_));
  EXPECT_DEATH(slot_.bytes()[5] = std::byte{2}, "use-after-poison");
  // Also when the copy is complete and nobody has observed it, and when another one was.
  ASSERT_TRUE(Copy(b_, target_ + kBytes, slot_));
  device_->RunUntilIdle();
  EXPECT_DEATH(slot_.bytes()[5] = std::byte{2}, "use-after-poison");
  ASSERT_TRUE(device_->SynchronizeStream(b_));
  EXPECT_DEATH(slot_.bytes()[5] = std::byte{2}, "use-after-poison");
  ASSERT_TRUE(device_->SynchronizeStream(a_));
  slot_.bytes()[5] = std::byte{2};
  ExpectNoHazard();
}

TEST_F(SourcePoison, TheCopyItselfReadsItsSourceEarlyLateAndInPieces) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    FakeOptions options;
    options.choices = std::make_shared<HashChoices>(seed);
    Reset(options);
    Fill(slot_, 3);
    ASSERT_TRUE(Copy(a_, target_, slot_));
    ASSERT_TRUE(Copy(b_, target_ + kBytes, slot_));
    ASSERT_TRUE(device_->SynchronizeDevice());
    EXPECT_EQ(At(target_, 2 * kBytes), BytesOf(3, 2 * kBytes));
    Fill(slot_, 4);
    ExpectNoHazard();
  }
}

TEST_F(SourcePoison, NeighboursAreFree) {
  const PinnedBuffer large = *device_->AllocatePinned(64);
  for (size_t begin : {0U, 3U, 8U, 13U}) {
    ASSERT_TRUE(device_->CopyAsync(target_, large.bytes().subspan(begin, 9), a_));
    large.bytes()[begin + 9] = std::byte{1};
    if (begin != 0) large.bytes()[begin - 1] = std::byte{1};
    ASSERT_TRUE(device_->SynchronizeStream(a_));
    FillUnannounced(large, 2);
  }
  ExpectNoHazard();
}

TEST_F(SourcePoison, AnnouncedAccessesAreJudgedByTheDetectorAlone) {
  ASSERT_TRUE(Copy(a_, target_, slot_));
  device_->OnHostAccess(slot_.bytes(), HostAccess::kRead);
  EXPECT_EQ(slot_.bytes()[0], slot_.bytes()[1]);
  ExpectNoHazard();
  Fill(slot_, 1);
  TheHazard(HazardKind::kWriteToSourceInFlight);
}

TEST_F(SourcePoison, PartsThatOverlapStayPoisonedAsLongAsOneOfThemIsInFlight) {
  ASSERT_TRUE(device_->CopyAsync(target_, Part(0, 32), a_));
  ASSERT_TRUE(device_->CopyAsync(target_ + kBytes, Part(16, 32), b_));
  ASSERT_TRUE(device_->SynchronizeStream(a_));
  slot_.bytes()[0] = std::byte{1};  // no longer in flight
  if (kAddressSanitizer) {
    EXPECT_DEATH(slot_.bytes()[20] = std::byte{1}, "use-after-poison");
  }
  ASSERT_TRUE(device_->SynchronizeStream(b_));
  FillUnannounced(slot_, 1);
  ExpectNoHazard();
}

TEST_F(SourcePoison, MemoryThatIsReleasedAndServedAgainIsFree) {
  ASSERT_TRUE(Copy(a_, target_, slot_));
  slot_ = *device_->AllocatePinned(kBytes);  // the old one dies in flight
  TheHazard(HazardKind::kReleaseOfSourceInFlight);
  const PinnedBuffer again = *device_->AllocatePinned(kBytes);
  FillUnannounced(again, 1);
  ASSERT_TRUE(device_->SynchronizeDevice());
  FillUnannounced(again, 2);
  ExpectNoHazard();
}

}  // namespace
}  // namespace h2d
