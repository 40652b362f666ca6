// Priority-bounded random runs of tasks inside a stager: at a few random points of a run the task
// that leads falls behind all others. What needs one task to stand still while another gets far, a
// fair scheduler hits seldom and the bounded worlds of the exploration are too small for.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "h2d/device/fake/explore/priority_choices.h"
#include "h2d/device/fake/explore/search.h"
#include "h2d/device/fake/fake_device.h"
#include "h2d/device/fake/host_tasks.h"
#include "h2d/tests/exploration/images.h"
#include "h2d/tests/support/real_stager.h"
#include "h2d/tests/support/stager_under_test.h"
#include "h2d/tests/wrong_stagers/little_stager.h"

namespace h2d::testing {
namespace {

constexpr uint32_t kTasks = 3;
constexpr uint32_t kCopies = 6;  // of each task
constexpr uint32_t kStreams = 2;
constexpr uint64_t kRuns = 1000;

// Tasks that share a stager, its ring of 1 to 3 slots, 1 or 2 mirrors and the streams.
class SharedRun {
 public:
  SharedRun(uint64_t seed, const std::shared_ptr<ChoiceSource>& choices)
      : seed_(seed), fake_(FakeDevice::Create({.choices = choices})) {}

  std::string Run(const StagerFactory& make_stager) {
    SetUp(make_stager);
    if (!failure_.empty()) return failure_;
    std::vector<std::function<void()>> tasks;
    for (uint32_t task = 0; task < kTasks; ++task) {
      tasks.push_back([this, task] { MakeCopies(task); });
    }
    const Expected<void> ran = RunTasks(*fake_, std::move(tasks));
    if (!ran) Fail(ran.error().ToString());
    fake_->RunUntilIdle();
    for (uint32_t i = 0; i < mirrors_; ++i) CheckContent(i);
    for (const Hazard& hazard : fake_->hazards()) Fail(hazard.ToString());
    return failure_;
  }

 private:
  void Fail(const std::string& why) {
    if (failure_.empty()) failure_ = why;
  }

  // The same for a seed, whatever the tasks' order.
  uint32_t Draw(uint64_t what, uint32_t n) const {
    return static_cast<uint32_t>(MixBits(seed_ * 1000 + what) % n);
  }

  void SetUp(const StagerFactory& make_stager) {
    const uint32_t slots = 1 + Draw(0, 3);
    mirrors_ = 1 + Draw(1, 2);
    const StagerOptions options{.slot_bytes = PinnedBuffer::kAlignment,
                                .initial_slots = 1,
                                .max_slots = slots,
                                .max_pinned_bytes = slots * PinnedBuffer::kAlignment};
    auto stager = make_stager(fake_, options, mirrors_);
    if (!stager) return Fail(stager.error().ToString());
    stager_ = std::move(*stager);
    for (uint32_t i = 0; i < kStreams; ++i) streams_.push_back(fake_->NewStream());
    for (uint32_t i = 0; i < mirrors_; ++i) {
      targets_.push_back({*fake_->AllocateDevice(kImageBytes), kElements, sizeof(uint32_t)});
      if (auto made = stager_->NewMirror(i, targets_[i]); !made) Fail(made.error().ToString());
    }
  }

  void MakeCopies(uint32_t task) {
    for (uint32_t i = 0; i < kCopies; ++i) {
      const uint64_t what = 10 + 4 * (task * kCopies + i);
      const Image& image = kImages[Draw(what, kImages.size())];
      const auto outcome = stager_->CopyMirrored(Draw(what + 1, mirrors_), ViewOf(image),
                                                 streams_[Draw(what + 2, kStreams)], true);
      if (!outcome) return Fail(outcome.error().ToString());
    }
  }

  // Whoever came last, it was one whole image.
  void CheckContent(uint32_t mirror) {
    Image there{};
    const auto seen = fake_->Peek(targets_[mirror].ptr, std::as_writable_bytes(std::span(there)));
    if (!seen) return Fail(seen.error().ToString());
    for (const Image& image : kImages) {
      if (image == there) return;
    }
    Fail("mirror " + std::to_string(mirror) + " holds a mixture of images (I8)");
  }

  const uint64_t seed_;
  const std::shared_ptr<FakeDevice> fake_;
  uint32_t mirrors_ = 1;
  std::vector<Stream> streams_;
  std::vector<Destination> targets_;
  std::unique_ptr<StagerUnderTest> stager_;
  std::string failure_;
};

// Depths 1 to 4: how many orderings among tasks a fault may need.
std::shared_ptr<ChoiceSource> Priorities(uint64_t seed) {
  return std::make_shared<PriorityChoices>(seed, static_cast<uint32_t>(1 + seed % 4), 400);
}

SearchReport Search(const StagerFactory& make_stager, uint64_t runs) {
  uint64_t seed = 0;
  return SearchSeeds(1, runs, Priorities, [&](const std::shared_ptr<ChoiceSource>& choices) {
    return SharedRun(++seed, choices).Run(make_stager);
  });
}

TEST(StagerPriorities, NoTaskThatFallsBehindBreaksAPromise) {
  const SearchReport report = Search(MakeRealStager, kRuns);
  EXPECT_EQ(report.failure, "") << "seed " << report.seed;
  EXPECT_EQ(report.runs, kRuns);
}

TEST(StagerPriorities, FaultsBetweenTasksAreFound) {
  for (const Flaw flaw : {Flaw::kNoWait, Flaw::kFreesWhatWasListed, Flaw::kWaitsForRecycledSlot,
                          Flaw::kTrimWithoutWait, Flaw::kCopyWithoutWait}) {
    const SearchReport report = Search(LittleStagerWith(flaw), kRuns);
    EXPECT_NE(report.failure, "") << ToString(flaw);
    std::cout << ToString(flaw) << ": found by run " << report.runs << "\n";
  }
}

TEST(StagerPriorities, TheLittleStagerWithoutAFaultPasses) {
  const SearchReport report = Search(LittleStagerWith(Flaw::kNone), kRuns);
  EXPECT_EQ(report.failure, "") << "seed " << report.seed;
}

}  // namespace
}  // namespace h2d::testing
