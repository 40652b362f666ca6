// Every adversary, switched on, does what it is there for; switched off, it does not; and seeds
// draw it sometimes.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "h2d/device/fake/fake_device.h"
#include "h2d/device/fake/host_tasks.h"
#include "h2d/device/fake/testing/fake_fixture.h"

namespace h2d {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using testing::BytesOf;

// The same answer each time that a site asks.
class FixedAnswers final : public ChoiceSource {
 public:
  explicit FixedAnswers(std::map<ChoiceSite, uint32_t> answers) : answers_(std::move(answers)) {}

 private:
  uint32_t Draw(const ChoicePoint& point, uint32_t) override {
    const auto found = answers_.find(point.site);
    return found == answers_.end() ? 0 : found->second;
  }
  std::map<ChoiceSite, uint32_t> answers_;
};

class AdversariesTest : public testing::FakeFixture {
 protected:
  // Whether `effect` shows with `choices` and those of `sites` that the test is not about.
  bool Shows(const std::function<bool()>& effect, std::shared_ptr<ChoiceSource> choices,
             ChoiceSites sites) {
    FakeOptions options = Unpoisoned();
    options.choices = std::move(choices);
    options.adversaries = sites;
    options.detect_hazards = false;  // most effects are seen by breaking the rules
    Reset(options);
    return effect();
  }

  // `also`: what other sites have to answer for the effect to be seen at all.
  void ExpectSwitch(ChoiceSite site, uint32_t answer, const std::function<bool()>& effect,
                    const std::map<ChoiceSite, uint32_t>& also = {}) {
    ChoiceSites others = ChoiceSites::None();
    for (const auto& [other, unused] : also) others = others.With(other);
    std::map<ChoiceSite, uint32_t> answers = also;
    answers[site] = answer;
    EXPECT_TRUE(Shows(effect, std::make_shared<FixedAnswers>(answers), others.With(site)));
    EXPECT_FALSE(Shows(effect, std::make_shared<FixedAnswers>(answers), others.Without(site)));
    EXPECT_FALSE(Shows(effect, nullptr, ChoiceSites::All()));
    if (!also.empty()) return;
    int shown = 0;
    constexpr int kSeeds = 100;
    for (int seed = 0; seed < kSeeds; ++seed) {
      shown += Shows(effect, std::make_shared<HashChoices>(seed), others.With(site));
    }
    EXPECT_GT(shown, 0);
    EXPECT_LT(shown, kSeeds);
  }

  // What arrives of 1 when the source becomes 2 before the copy starts and 3 before it ends.
  std::vector<std::byte> ArrivesOfAChangingSource() {
    FillUnannounced(slot_, 1);
    EXPECT_TRUE(device_->Hold(a_));
    EXPECT_TRUE(Copy(a_, target_, slot_));
    FillUnannounced(slot_, 2);
    EXPECT_TRUE(device_->Release(a_));  // it starts
    FillUnannounced(slot_, 3);
    EXPECT_TRUE(device_->SynchronizeStream(a_));
    return At(target_);
  }
  bool ArrivedAtOnce() { return At(target_) == BytesOf(1, kBytes); }
};

TEST_F(AdversariesTest, APinnedSourceIsReadEarlyOrLate) {
  ExpectSwitch(ChoiceSite::kSourceRead, 1,
               [&] { return ArrivesOfAChangingSource() == BytesOf(2, kBytes); });
  ExpectSwitch(ChoiceSite::kSourceRead, 2,
               [&] { return ArrivesOfAChangingSource() == BytesOf(3, kBytes); });
}

TEST_F(AdversariesTest, ATornSourceIsReadInPieces) {
  ExpectSwitch(ChoiceSite::kTornChunk, 2,
               [&] { return ArrivesOfAChangingSource() == BytesOf(3, kBytes); },
               {{ChoiceSite::kSourceRead, 3}});
}

TEST_F(AdversariesTest, PiecesOfATornSourceAreReadInAnyOrder) {
  // The last quarter first, the first one last: the order of the bytes is permuted in time.
  const auto chunk = [](uint32_t index) { return ChoicePoint{9, ChoiceSite::kTornChunk, index}; };
  ResetWith({{{9, ChoiceSite::kSourceRead, 0}, 3},
             {chunk(0), 2},
             {chunk(1), 1},
             {chunk(2), 2},
             {chunk(3), 0}});
  device_->BeginOperation(9);
  const std::vector<std::byte> bytes = ArrivesOfAChangingSource();
  for (const auto& [at, value] : std::map<size_t, int>{{0, 3}, {16, 2}, {32, 3}, {48, 1}}) {
    EXPECT_EQ(bytes[at], static_cast<std::byte>(value)) << at;
  }
}

TEST_F(AdversariesTest, APageableCopyBlocksOrIsReadLate) {
  std::vector<std::byte> source;
  const auto copy = [&] {
    source = BytesOf(1, kBytes);
    EXPECT_TRUE(device_->CopyAsync(target_, source, a_));
  };
  ExpectSwitch(ChoiceSite::kPageable, 1, [&] {
    copy();
    return ArrivedAtOnce();
  });
  ExpectSwitch(ChoiceSite::kPageable, 2, [&] {
    copy();
    std::fill(source.begin(), source.end(), std::byte{2});
    EXPECT_TRUE(device_->SynchronizeStream(a_));
    return At(target_) == BytesOf(2, kBytes);
  });
}

TEST_F(AdversariesTest, MembersOfABatchAreUnordered) {
  ExpectSwitch(ChoiceSite::kBatchOrder, 1, [&] {
    const PinnedBuffer other = *device_->AllocatePinned(kBytes);
    FillUnannounced(slot_, 1);
    FillUnannounced(other, 2);
    const std::array<CopyEntry, 2> entries = {CopyEntry{target_, slot_.bytes()},
                                              CopyEntry{target_, other.bytes()}};
    EXPECT_TRUE(device_->CopyBatchAsync(entries, a_));
    EXPECT_TRUE(device_->SynchronizeStream(a_));
    return At(target_) == BytesOf(1, kBytes);
  });
}

TEST_F(AdversariesTest, AnOperationTakesLonger) {
  ExpectSwitch(ChoiceSite::kLatency, 3, [&] {
    EXPECT_TRUE(Copy(a_, target_, slot_));
    EXPECT_TRUE(device_->SynchronizeStream(a_));
    return device_->Now() > microseconds(400);
  });
}

TEST_F(AdversariesTest, ACompletionIsSeenLate) {
  ExpectSwitch(ChoiceSite::kSeenLate, 1, [&] {
    EXPECT_TRUE(Copy(a_, target_, slot_));
    const Event event = RecordOn(a_);
    device_->RunUntilIdle();
    return StateOf(event) == EventState::kPending;
  });
}

TEST_F(AdversariesTest, AWaitAnswersAnyCompleteEvent) {
  ExpectSwitch(ChoiceSite::kWaitAnswer, 1,
               [&] {
                 const Event first = RecordOn(a_);
                 const Event second = RecordOn(b_);
                 const std::array<const Event*, 2> events = {&first, &second};
                 return **device_->WaitAny(events, {std::chrono::seconds(1)}) == 1;
               },
               {{ChoiceSite::kSeenLate, 1}});
}

TEST_F(AdversariesTest, AnEnqueueBlocks) {
  ExpectSwitch(ChoiceSite::kEnqueueBlocks, 1, [&] {
    FillUnannounced(slot_, 1);
    EXPECT_TRUE(Copy(a_, target_, slot_));
    return ArrivedAtOnce();
  });
}

TEST_F(AdversariesTest, AnAllocationIsSlow) {
  ExpectSwitch(ChoiceSite::kAllocation, 1, [&] {
    const VirtualTime before = device_->Now();
    EXPECT_TRUE(device_->AllocatePinned(2 * kBytes));
    return device_->Now() - before >= milliseconds(20);
  });
}

TEST_F(AdversariesTest, AnotherTaskRunsFirst) {
  ExpectSwitch(ChoiceSite::kTask, 1, [&] {
    std::vector<int> order;
    const auto task = [&](int index) {
      return [&, index] {
        device_->AdvanceTime(microseconds(1));
        order.push_back(index);
      };
    };
    EXPECT_TRUE(RunTasks(*device_, {task(0), task(1)}));
    return order.front() == 1;
  });
}

TEST_F(AdversariesTest, AFreeWaitsForTheDeviceOrForNothing) {
  const auto free_behind_a_copy = [&](FakeDevice& device) {
    EXPECT_TRUE(device.Launch(a_, {.name = "busy", .duration = milliseconds(20)}));
    const VirtualTime before = device.Now();
    { const PinnedBuffer dies = *device.AllocatePinned(2 * kBytes); }
    EXPECT_TRUE(device.Trim());
    EXPECT_EQ(device.counters().pinned_cached_bytes, 0U);
    return device.Now() - before;
  };
  ExpectSwitch(ChoiceSite::kFree, 1,
               [&] { return free_behind_a_copy(*device_) < milliseconds(10); });
}

TEST_F(AdversariesTest, AFreeThatWaitsForNothingIsNoOrder) {
  for (const uint32_t answer : {0U, 1U}) {
    ResetWith({{{9, ChoiceSite::kFree, 0}, answer}});
    ASSERT_TRUE(Copy(a_, target_, slot_));
    device_->BeginOperation(9);
    ASSERT_TRUE(device_->Trim());
    Fill(slot_, 1);
    if (answer == 0) {
      ExpectNoHazard();
    } else {
      TheHazard(HazardKind::kWriteToSourceInFlight);
    }
  }
}

TEST_F(AdversariesTest, ACopyStillReadsWhatATrimBesideItFreed) {
  ResetWith({{{9, ChoiceSite::kFree, 0}, 1}, {{8, ChoiceSite::kSourceRead, 0}, 2}});
  device_->BeginOperation(8);
  FillUnannounced(slot_, 7);
  ASSERT_TRUE(Copy(a_, target_, slot_));
  { const PinnedBuffer dies = std::move(slot_); }
  TheHazard(HazardKind::kReleaseOfSourceInFlight);
  device_->BeginOperation(9);
  ASSERT_TRUE(device_->Trim());
  ASSERT_TRUE(device_->SynchronizeStream(a_));
  EXPECT_EQ(At(target_), BytesOf(7, kBytes));
}

TEST_F(AdversariesTest, AStreamIsStuckUntilTheTestReleasesIt) {
  const auto stuck = [&] {
    FillUnannounced(slot_, 1);
    EXPECT_TRUE(Copy(a_, target_, slot_));
    const Event event = RecordOn(a_);
    const Event* const events[] = {&event};
    const auto waited = device_->WaitAny(events, {std::chrono::hours(1)});
    EXPECT_TRUE(waited);
    if (device_->RunUntilIdle() == 0) return false;
    EXPECT_EQ(*waited, std::nullopt);
    EXPECT_NE(
        device_->SynchronizeStream(a_).error().message.find("a holds 1 operation and is stuck"),
        std::string::npos);
    EXPECT_TRUE(device_->Release(a_));
    EXPECT_EQ(device_->RunUntilIdle(), 0U);
    EXPECT_EQ(At(target_), BytesOf(1, kBytes));
    return true;
  };
  ExpectSwitch(ChoiceSite::kStuck, 1, stuck);
}

TEST_F(AdversariesTest, StreamsAreStuckOnlyWhenAskedFor) {
  EXPECT_FALSE(FakeOptions().adversaries.contains(ChoiceSite::kStuck));
  EXPECT_TRUE(ChoiceSites::All().contains(ChoiceSite::kStuck));
}

TEST_F(AdversariesTest, UnderConfidentialComputingCopiesFromPinnedMemoryWaitForTheirStream) {
  const auto copy = [&] {
    EXPECT_TRUE(device_->Launch(a_, {.name = "busy", .duration = milliseconds(20)}));
    FillUnannounced(slot_, 1);
    EXPECT_TRUE(Copy(a_, target_, slot_));
    return ArrivedAtOnce() && device_->Now() >= milliseconds(20);
  };
  ExpectSwitch(ChoiceSite::kConfidential, 1, copy);
  FakeOptions options = Unpoisoned();
  options.confidential_computing = true;
  Reset(options);
  EXPECT_TRUE(copy());
  // Not kernels, and not pageable memory, which is captured as ever.
  const VirtualTime before = device_->Now();
  EXPECT_TRUE(device_->Launch(a_, {.name = "busy", .duration = milliseconds(20)}));
  const std::vector<std::byte> source = BytesOf(2, kBytes);
  EXPECT_TRUE(device_->CopyAsync(target_, source, a_));
  EXPECT_LT(device_->Now() - before, milliseconds(1));
}

}  // namespace
}  // namespace h2d
