#include "h2d/tests/stress/shared_stager.h"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "h2d/stager/pinned_stager.h"

namespace h2d::testing {
namespace {

constexpr uint64_t kCount = 96;  // values of a destination
constexpr int kCopiesOfRound = 6;

// The first thing that went wrong.
class Verdict {
 public:
  void Fail(std::string why) {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = std::move(why);
  }
  std::string Text() {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

 private:
  std::mutex mutex_;
  std::string failure_;
};

std::vector<uint32_t> Values(uint32_t thread, uint32_t round, uint32_t copy) {
  return std::vector<uint32_t>(kCount, thread << 24 | round << 8 | copy);
}

class Worker {
 public:
  Worker(const StressDevice& stress, PinnedStager& stager, H2DMirror& shared, Verdict& verdict,
         uint32_t thread)
      : stress_(stress),
        stager_(stager),
        shared_(shared),
        verdict_(verdict),
        thread_(thread),
        stream_(stress.new_stream()),
        plain_(Destination::Of<uint32_t>(stress.allocate(kCount), kCount)),
        in_place_(Destination::Of<uint32_t>(stress.allocate(kCount), kCount)) {
    Expected<H2DMirror> mirror =
        stager.NewMirror(Destination::Of<uint32_t>(stress.allocate(kCount), kCount));
    if (mirror) {
      mirror_.emplace(std::move(*mirror));
    } else {
      verdict.Fail(mirror.error().ToString());
    }
  }

  const Stream& stream() const { return stream_; }

  // Copies that all threads make at once.
  void CopyAll(uint32_t round) {
    for (uint32_t copy = 0; copy < kCopiesOfRound; ++copy) {
      const std::vector<uint32_t> values = Values(thread_, round, copy);
      Check(stager_.Copy(plain_, values, stream_));
      std::vector<uint32_t> edited = values;
      edited[(round + copy) % kCount] = copy;  // a trimmed copy after a full one
      Check(stager_.Copy(*mirror_, values, stream_));
      Check(stager_.Copy(*mirror_, edited, stream_));
      Check(stager_.Copy(*mirror_, edited, stream_));
      Check(stager_.Copy(shared_, values, stream_));
      WriteInPlace(values);
      if (copy % 3 == 2) shared_.Invalidate();
      static_cast<void>(stager_.stats());
    }
  }

  // What must have arrived, once this thread's copies of the round are made.
  void CheckOwn(uint32_t round) {
    const uint32_t last = kCopiesOfRound - 1;
    const std::vector<uint32_t> values = Values(thread_, round, last);
    std::vector<uint32_t> edited = values;
    edited[(round + last) % kCount] = last;
    Compare("plain", plain_, values);
    Compare("mirrored", mirror_->destination(), edited);
    Compare("in place", in_place_, values);
  }

 private:
  void Check(const Expected<CopyOutcome>& outcome) {
    if (!outcome) verdict_.Fail(outcome.error().ToString());
  }

  void WriteInPlace(const std::vector<uint32_t>& values) {
    Expected<SlotLease> lease = stager_.Acquire(kCount * sizeof(uint32_t));
    if (!lease) return verdict_.Fail(lease.error().ToString());
    std::ranges::copy(values, lease->as<uint32_t>().begin());
    Check(lease->Submit(in_place_, stream_));
  }

  void Compare(const char* what, const Destination& destination,
               const std::vector<uint32_t>& values) {
    if (stress_.read(destination.ptr, kCount, stream_) != values) {
      verdict_.Fail("thread " + std::to_string(thread_) +
                    " found other values than its own at its " + what + " destination");
    }
  }

  const StressDevice& stress_;
  PinnedStager& stager_;
  H2DMirror& shared_;
  Verdict& verdict_;
  const uint32_t thread_;
  const Stream stream_;
  const Destination plain_;
  const Destination in_place_;
  std::optional<H2DMirror> mirror_;
};

// The shared destination holds one call's values and no mixture of two.
void CheckShared(const StressDevice& stress, const Destination& shared, const Stream& stream,
                 Verdict& verdict) {
  const std::vector<uint32_t> seen = stress.read(shared.ptr, kCount, stream);
  if (std::ranges::adjacent_find(seen, std::not_equal_to()) != seen.end()) {
    verdict.Fail("the shared destination holds a mixture of two copies");
  }
}

}  // namespace

std::string RunSharedStager(const StressDevice& stress, int rounds) {
  Verdict verdict;
  // Fewer slots than threads want.
  StagerOptions options;
  options.slot_bytes = kCount * sizeof(uint32_t);
  options.initial_slots = 2;
  options.max_slots = 6;
  options.wait_timeout = std::chrono::minutes(2);
  auto stager = PinnedStager::Create(stress.device, options);
  if (!stager) return stager.error().ToString();
  auto shared = (*stager)->NewMirror(Destination::Of<uint32_t>(stress.allocate(kCount), kCount));
  if (!shared) return shared.error().ToString();

  std::barrier meet(kStressThreads);
  const auto run = [&](uint32_t thread) {
    Worker worker(stress, **stager, *shared, verdict, thread);
    for (int round = 0; round < rounds; ++round) {
      worker.CopyAll(static_cast<uint32_t>(round));
      worker.CheckOwn(static_cast<uint32_t>(round));
      meet.arrive_and_wait();
      // Whoever copies the shared values last is ordered after all; then nobody writes them.
      if (thread == 0) {
        const std::vector<uint32_t> last(kCount, static_cast<uint32_t>(round));
        const auto hit = (*stager)->Copy(*shared, last, worker.stream());
        if (!hit) verdict.Fail(hit.error().ToString());
        CheckShared(stress, shared->destination(), worker.stream(), verdict);
      }
      meet.arrive_and_wait();
    }
  };
  std::vector<std::jthread> threads;
  for (uint32_t thread = 0; thread < kStressThreads; ++thread) threads.emplace_back(run, thread);
  threads.clear();
  return verdict.Text();
}

}  // namespace h2d::testing
