// Random batches on the simulated device: what a batch leaves cannot be told from copying each of
// its values in full (I3, I4), and after an error no mirror believes in any of them (I5).
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "h2d/tests/steps/random_run.h"

namespace h2d::testing {
namespace {

using internal::Mark;
using Values = std::vector<int32_t>;

constexpr size_t kTargets = 6;
constexpr size_t kMirrored = 4;  // the first of them

struct Target {
  std::string name;
  DevicePtr ptr;
  uint64_t capacity = 0;
  std::optional<H2DMirror> mirror;
  Bytes device;  // what a reader must see
  Values next;   // what the call that is being made brings
  bool padded = false;

  Destination destination() const { return Destination::Of<int32_t>(ptr, capacity); }
  std::optional<int32_t> pad() const { return padded ? std::optional<int32_t>(-1) : std::nullopt; }
  BatchCopy Copy() {
    return mirror ? BatchCopy::To(*mirror, next, pad()) : BatchCopy::To(destination(), next, pad());
  }
  void Copied() {
    Values image = next;
    if (padded) image.resize(capacity, -1);
    const auto bytes = std::as_bytes(std::span(image));
    std::copy(bytes.begin(), bytes.end(), device.begin());
  }
};

class BatchRun : public RandomRun {
 public:
  explicit BatchRun(uint64_t seed) : RandomRun(seed) {
    streams_.push_back(fake_->LegacyStream());
    for (size_t i = 0; i < kTargets; ++i) MakeTarget(i);
  }

  void Step() {
    switch (Draw(6)) {
      case 0:
        return targets_[Draw(kMirrored)].mirror->Invalidate();
      case 1:
        return Batch(/*fails=*/true);
      case 2:
        return Single();
      default:
        return Batch(/*fails=*/false);
    }
  }

 private:
  void MakeTarget(size_t i) {
    Target& target = targets_[i];
    target.name = "target " + std::to_string(i);
    target.capacity = 1 + Draw(20);
    target.ptr = *fake_->AllocateDevice(target.capacity * sizeof(int32_t), target.name);
    target.device.resize(target.capacity * sizeof(int32_t));
    if (i < kMirrored) target.mirror.emplace(*stager_->NewMirror(target.destination()));
  }

  void DrawValues(Target& target) {
    target.padded = Draw(2) == 0;
    target.next.resize(Draw(static_cast<uint32_t>(target.capacity + 1)));
    for (int32_t& value : target.next) value = static_cast<int32_t>(Draw(2));
  }

  // Some of the targets. Where one has no mirror the order is the caller's: after all, before all.
  void Batch(bool fails) {
    const Stream& stream = DrawStream();
    std::vector<Target*> chosen;
    bool plain = false;
    for (Target& target : targets_) {
      if (Draw(2) == 0) continue;
      if (!target.mirror && Draw(3) != 0) continue;
      DrawValues(target);
      chosen.push_back(&target);
      plain = plain || !target.mirror;
    }
    AfterReaders(stream);
    if (plain) AfterAll(stream);
    if (fails) FailNext({CallKind::kCopyBatchAsync, CallKind::kCopyAsync, CallKind::kRecord});
    auto outcome = Send(chosen, stream);
    faulty_->ClearFaults();
    // Once more on the same stream: after a record that failed no other can be ordered after it.
    if (fails && !outcome) outcome = Send(chosen, stream);
    if (!outcome) return Keep(Expected<void>(ErrorOf(outcome)));
    for (Target* target : chosen) target->Copied();
    if (plain) BeforeAll(stream);
    ReadBack(chosen, stream);
  }

  Expected<CopyOutcome> Send(const std::vector<Target*>& chosen, const Stream& stream) {
    std::vector<BatchCopy> copies;
    for (Target* target : chosen) copies.push_back(target->Copy());
    return stager_->CopyBatch(copies, stream);
  }

  // A copy of its own through one of the mirrors.
  void Single() {
    Target& target = targets_[Draw(kMirrored)];
    const Stream& stream = DrawStream();
    DrawValues(target);
    AfterReaders(stream);
    auto outcome = stager_->Copy(*target.mirror, target.next, stream, target.pad());
    if (!outcome) return Keep(Expected<void>(ErrorOf(outcome)));
    target.Copied();
    ReadBack({&target}, stream);
  }

  // The part of each target that the last call brought: what lies behind it may be on another
  // stream. Not behind every call, because waits for readers order copies.
  void ReadBack(const std::vector<Target*>& chosen, const Stream& stream) {
    if (Draw(2) == 0) return;
    std::vector<Expectation> expected;
    for (const Target* target : chosen) {
      const size_t bytes = (target->padded ? target->capacity : target->next.size()) * 4;
      if (bytes == 0) continue;
      const auto begin = target->device.begin();
      expected.push_back(
          {target->name, target->ptr, Bytes(begin, begin + static_cast<long>(bytes))});
    }
    if (!expected.empty()) Read(stream, std::move(expected));
  }

  std::array<Target, kTargets> targets_;
};

TEST(CopyBatchProperty, ABatchCannotBeToldFromItsCopiesOneByOne) {
  const CountMarks marks;
  const Seeds seeds = Seeds::FromEnvironment(kRunsOfTest);
  for (uint64_t seed = seeds.first; seed < seeds.end(); ++seed) {
    BatchRun run(seed);
    for (int step = 0; step < 40; ++step) run.Step();
    const std::string verdict = run.Verdict();
    ASSERT_EQ(verdict, "") << HowToReplay(seed) << "\n" << run.Timeline();
  }
  marks.Expect(seeds,
               {Mark::kBatch, Mark::kBatchSeparate, Mark::kBatchSkipped, Mark::kBatchNotSent});
}

}  // namespace
}  // namespace h2d::testing
