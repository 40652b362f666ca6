// Calls that cannot work as written: a clear error, nothing changed, and the next call works.
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "h2d/tests/scenarios/support/scenario_test.h"

namespace h2d::scenarios {
namespace {

using Kind = CopyOutcome::Kind;

class BadInput : public ScenarioTest {
 protected:
  void SetUp() override {
    MakeStager();
    mirror_.emplace(stager().NewMirror(NewDestination("mirrored")).value());
    ExpectIssued(stager().Copy(*mirror_, ValuesOf(1), stream_));
    ASSERT_TRUE(fake().SynchronizeStream(stream_));
  }
  void TearDown() override {
    mirror_.reset();
    ScenarioTest::TearDown();
  }

  // `call` is refused with `code`, says `part`, issues nothing and changes no mirror; the next good
  // call works.
  template <class Call>
  void ExpectRefused(ErrorCode code, const std::string& part, const Call& call) {
    SCOPED_TRACE(part);
    const FakeCounters before = fake().counters();
    const StagerStats stats = stager().stats();
    const auto result = call();
    ExpectError(result, code);
    if (!result) {
      const std::string& message = result.error().message;
      EXPECT_NE(message.find(part), std::string::npos) << message;
    }
    const FakeCounters after = fake().counters();
    EXPECT_EQ(after.copies, before.copies);
    EXPECT_EQ(after.records, before.records);
    EXPECT_EQ(after.stream_waits, before.stream_waits);
    EXPECT_EQ(after.pinned_allocations, before.pinned_allocations);
    EXPECT_EQ(stager().stats().slots_in_use, stats.slots_in_use);
    EXPECT_EQ(stager().stats().bytes_asked, stats.bytes_asked);
    EXPECT_TRUE(mirror_->Matches(ValuesOf(1)).value());

    const Values next = ValuesOf(++tag_);
    ExpectIssued(stager().Copy(to_, next, stream_));
    ExpectRead(stream_, to_, next);
    ExpectKind(stager().Copy(*mirror_, ValuesOf(1), stream_), Kind::kSkipped);
  }

  const Stream stream_ = fake().NewStream("plan");
  const Destination to_ = NewDestination("plain");
  std::optional<H2DMirror> mirror_;
  int32_t tag_ = 10;
};
INSTANTIATE_TEST_SUITE_P(All, BadInput, ::testing::ValuesIn(Settings()), NameOf);

TEST_P(BadInput, MoreValuesThanTheDestinationHolds) {
  const Values many = ValuesOf(2, count() + 1);
  const std::string number = std::to_string(count() + 1);
  const auto invalid = ErrorCode::kInvalidArgument;
  ExpectRefused(invalid, number, [&] { return stager().Copy(to_, many, stream_); });
  ExpectRefused(invalid, number, [&] { return stager().TryCopy(to_, many, stream_, 0); });
  ExpectRefused(invalid, number, [&] { return stager().Copy(*mirror_, many, stream_); });
  ExpectRefused(invalid, number, [&] { return mirror_->Matches(many); });
}

TEST_P(BadInput, ElementsOfAnotherSize) {
  const std::vector<int64_t> wide = {1, 2};
  const auto invalid = ErrorCode::kInvalidArgument;
  ExpectRefused(invalid, "8", [&] { return stager().Copy(to_, wide, stream_); });
  ExpectRefused(invalid, "8", [&] { return stager().Copy(*mirror_, wide, stream_); });
}

TEST_P(BadInput, SizesThatOverflow) {
  const uint64_t most = std::numeric_limits<uint64_t>::max();
  const auto invalid = ErrorCode::kInvalidArgument;
  for (const Destination& to :
       {Destination::Of<int32_t>(to_.ptr, most / 2), Destination::Of<int32_t>(to_.ptr, most),
        Destination::Of<int32_t>(DevicePtr(most - 2), 1), Destination{to_.ptr, 3, 0}}) {
    ExpectRefused(invalid, "", [&] { return stager().Copy(to, ValuesOf(2), stream_); });
    ExpectRefused(invalid, "", [&] { return stager().Copy(to, Values{1}, stream_, -1); });
    ExpectRefused(invalid, "", [&] { return stager().NewMirror(to); });
    ExpectRefused(invalid, "", [&] { return mirror_->Rebind(to); });
  }
}

TEST_P(BadInput, ANullDestinationWithSomethingToWrite) {
  const Destination null = Destination::Of<int32_t>(DevicePtr(), count());
  const auto invalid = ErrorCode::kInvalidArgument;
  ExpectRefused(invalid, "null", [&] { return stager().Copy(null, ValuesOf(2), stream_); });
  ExpectRefused(invalid, "null", [&] { return stager().Copy(null, Values{}, stream_, -1); });
  ExpectRefused(invalid, "null", [&] { return stager().NewMirror(null); });
  ExpectRefused(invalid, "null", [&] { return mirror_->Rebind(null); });
}

TEST_P(BadInput, ADestinationThatOverlapsAnotherLiveMirrors) {
  const Destination mine = mirror_->destination();
  const auto invalid = ErrorCode::kInvalidArgument;
  for (const Destination& to : {mine, Destination::Of<int32_t>(mine.ptr, 1),
                                Destination::Of<std::byte>(mine.ptr + (bytes() - 1), 1)}) {
    ExpectRefused(invalid, "overlaps", [&] { return stager().NewMirror(to); });
  }
  auto second = stager().NewMirror(NewDestination());
  ASSERT_TRUE(second);
  ExpectRefused(invalid, "overlaps", [&] { return second->Rebind(mine); });
  EXPECT_TRUE(mirror_->Rebind(mine)) << "its own place is no overlap";
  ExpectIssued(stager().Copy(*mirror_, ValuesOf(1), stream_));
}

TEST_P(BadInput, AnotherStagersMirror) {
  auto other = PinnedStager::Create(shared_fake(), RingOf(1)).value();
  H2DMirror foreign = other->NewMirror(NewDestination()).value();
  const auto invalid = ErrorCode::kInvalidArgument;
  ExpectRefused(invalid, "another", [&] { return stager().Copy(foreign, ValuesOf(1), stream_); });
  // Mirrors of two stagers are disjoint as well: they write the same memory.
  ExpectRefused(invalid, "overlaps", [&] { return stager().NewMirror(foreign.destination()); });
}

TEST_P(BadInput, AMirrorWhoseStagerIsGone) {
  auto other = PinnedStager::Create(shared_fake(), RingOf(1)).value();
  H2DMirror orphan = other->NewMirror(NewDestination()).value();
  std::optional<SlotLease> lease(other->Acquire(bytes()).value());
  other.reset();
  const auto gone = ErrorCode::kFailedPrecondition;
  ExpectRefused(gone, "gone", [&] { return orphan.Matches(ValuesOf(1)); });
  ExpectRefused(gone, "gone", [&] { return orphan.Record(ValuesOf(1), stream_); });
  ExpectRefused(gone, "gone", [&] { return orphan.Rebind(NewDestination()); });
  ExpectRefused(gone, "gone", [&] { return lease->Submit(to_, stream_); });
  orphan.Invalidate();
}

TEST_P(BadInput, AStreamOfAnotherDevice) {
  const auto elsewhere = MakeFake(0);
  const Stream foreign = elsewhere->NewStream();
  const auto invalid = ErrorCode::kInvalidArgument;
  ExpectRefused(invalid, "device", [&] { return stager().Copy(to_, ValuesOf(2), foreign); });
  ExpectRefused(invalid, "device", [&] { return stager().Copy(*mirror_, ValuesOf(1), foreign); });
}

TEST_P(BadInput, MoreBytesThanTheStagerMayPin) {
  const uint64_t many = stager().options().max_pinned_bytes / sizeof(int32_t) + 1;
  const Destination to = NewDestination(many);
  const auto exhausted = ErrorCode::kResourceExhausted;
  ExpectRefused(exhausted, "max_pinned_bytes",
                [&] { return stager().Copy(to, ValuesOf(2, many), stream_); });
  ExpectRefused(exhausted, "max_pinned_bytes",
                [&] { return stager().Acquire(many * sizeof(int32_t)); });
}

TEST_P(BadInput, LeasesThatDoNotFitOrHoldNothing) {
  ExpectRefused(ErrorCode::kInvalidArgument, "0 bytes", [&] { return stager().Acquire(0); });
  auto lease = stager().Acquire(bytes()).value();
  std::fill(lease.as<int32_t>().begin(), lease.as<int32_t>().end(), 3);
  ExpectError(lease.Submit(Destination::Of<int32_t>(to_.ptr, count() - 1), stream_),
              ErrorCode::kInvalidArgument);
  ASSERT_TRUE(lease) << "a refused lease stays as it was";
  ExpectIssued(lease.Submit(to_, stream_));
  ExpectRefused(ErrorCode::kFailedPrecondition, "submitted",
                [&] { return lease.Submit(to_, stream_); });
}

// Nothing to do is a success, whatever else the call says.
TEST_P(BadInput, NoValuesWithoutPaddingMakeNoDeviceCall) {
  const FakeCounters before = fake().counters();
  const auto now = fake().Now();
  for (const Destination& to : {to_, Destination{}, mirror_->destination()}) {
    ExpectKind(stager().Copy(to, Values{}, stream_), Kind::kSkipped);
  }
  ExpectKind(stager().Copy(*mirror_, Values{}, stream_), Kind::kSkipped);
  EXPECT_EQ(fake().Now(), now) << "every call of the device takes time";
  EXPECT_EQ(fake().counters().inspections, before.inspections);
}

TEST_P(BadInput, NoValuesWithPaddingFillTheWholeDestination) {
  ExpectIssued(stager().Copy(to_, Values{}, stream_, 7));
  ExpectRead(stream_, to_, Values(count(), 7));
  ExpectIssued(stager().Copy(*mirror_, Values{}, stream_, -1));
  ExpectRead(stream_, mirror_->destination(), Values(count(), -1));
}

TEST(BadOptions, AreRefusedWithTheFieldAndItsValue) {
  const auto device = MakeFake(0);
  const auto refused = [&](const char* field, StagerOptions options) {
    const auto stager = PinnedStager::Create(device, options);
    ASSERT_FALSE(stager) << field;
    EXPECT_EQ(stager.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(stager.error().message.find(field), std::string::npos) << stager.error().message;
  };
  refused("slot_bytes", {.slot_bytes = 0});
  refused("slot_bytes", {.slot_bytes = std::numeric_limits<uint64_t>::max()});
  refused("max_slots", {.max_slots = 0});
  refused("initial_slots", {.initial_slots = 0});
  refused("initial_slots", {.initial_slots = 5, .max_slots = 4});
  refused("max_pinned_bytes", {.max_pinned_bytes = 0});
  refused("max_pinned_bytes", {.slot_bytes = 4096, .initial_slots = 2, .max_pinned_bytes = 8191});
  refused("wait_timeout", {.wait_timeout = std::chrono::nanoseconds(-1)});
  EXPECT_FALSE(PinnedStager::Create(nullptr));
  EXPECT_EQ(device->counters().pinned_allocations, 0u);
  EXPECT_TRUE(PinnedStager::Create(device, {}));
}

}  // namespace
}  // namespace h2d::scenarios
