#include "h2d/tests/steps/random_run.h"

#include <gtest/gtest.h>

#include <utility>

namespace h2d::testing {
namespace {

// Of which a full run of the tests makes at least so many.
constexpr uint64_t kRunsForMarks = 200;

}  // namespace

RandomRun::RandomRun(uint64_t seed) : random_(seed) {
  FakeOptions options;
  options.choices = std::make_shared<HashChoices>(seed);
  fake_ = FakeDevice::Create(options);
  faulty_ = FaultyDevice::Create(fake_);
  for (const char* name : {"a", "b", "c"}) streams_.push_back(fake_->NewStream(name));
  StagerOptions limits{.slot_bytes = 64, .initial_slots = 1, .max_pinned_bytes = uint64_t{1} << 16};
  limits.max_slots = 1 + Draw(4);
  stager_ = *PinnedStager::Create(faulty_, limits);
}

std::string RandomRun::Verdict() {
  stager_.reset();
  fake_->RunUntilIdle();
  if (!fake_->hazards().empty()) return fake_->hazards().front().ToString();
  if (!mismatch_->empty()) return *mismatch_;
  return error_;
}

void RandomRun::FailNext(std::initializer_list<CallKind> kinds) {
  const CallKind kind = kinds.begin()[Draw(static_cast<uint32_t>(kinds.size()))];
  const FaultTiming timing = Draw(2) == 0 ? FaultTiming::kBeforeCall : FaultTiming::kAfterCall;
  faulty_->Inject({.kind = kind, .call = faulty_->CallCount(kind) + 1, .timing = timing});
}

void RandomRun::AfterReaders(const Stream& stream) {
  for (const Event& event : readers_) Keep(fake_->WaitEvent(stream, event));
}

void RandomRun::WaitFor(const Stream& stream, const Stream& other) {
  auto event = fake_->CreateEvent();
  Keep(fake_->Record(*event, other));
  Keep(fake_->WaitEvent(stream, *event));
}

void RandomRun::AfterAll(const Stream& stream) {
  for (const Stream& other : streams_) WaitFor(stream, other);
}

void RandomRun::BeforeAll(const Stream& stream) {
  for (const Stream& other : streams_) WaitFor(other, stream);
}

void RandomRun::Read(const Stream& stream, std::vector<Expectation> expected) {
  KernelSpec kernel;
  kernel.name = "reader";
  for (const Expectation& e : expected) kernel.reads.push_back({e.from, e.bytes.size()});
  kernel.run = [mismatch = mismatch_, expected = std::move(expected)](const KernelMemory& memory) {
    for (const Expectation& e : expected) {
      const auto seen = memory.Read(e.from, e.bytes.size());
      for (size_t at = 0; at < e.bytes.size() && mismatch->empty(); ++at) {
        if (seen[at] != e.bytes[at]) *mismatch = e.name + " differs at byte " + std::to_string(at);
      }
    }
  };
  Keep(fake_->Launch(stream, std::move(kernel)));
  auto event = fake_->CreateEvent();
  Keep(fake_->Record(*event, stream));
  readers_.push_back(std::move(*event));
}

void RandomRun::Keep(const Expected<void>& result) {
  if (!result) Fail(result.error().ToString());
}

void RandomRun::Fail(std::string why) {
  if (error_.empty()) error_ = std::move(why);
}

CountMarks::CountMarks() {
  internal::EnableMarks(true);
  internal::ResetMarks();
}

CountMarks::~CountMarks() { internal::EnableMarks(false); }

void CountMarks::Expect(const Seeds& seeds, std::initializer_list<internal::Mark> marks) const {
  if (seeds.replay || seeds.count < kRunsForMarks) return;
  for (const internal::Mark mark : marks) {
    EXPECT_GT(internal::MarkHits(mark), 0u) << "no run reached: " << internal::Name(mark);
  }
}

}  // namespace h2d::testing
