// One run of a release queue on a simulated device whose calls may fail, and what must hold of it:
// no source is released while a copy may read it, none is kept for ever, the limits hold, and no
// capture is entered (I1, I5, I6, I7, I10).
//
// What judges. Each source is pinned memory that the queue owns: the device reports a release
// before the copy that reads it was *observed* complete, whatever order happened to run. Each is
// counted, and must have died once at the end.
#ifndef H2D_TESTS_UPLOADS_RELEASE_RUN_H_
#define H2D_TESTS_UPLOADS_RELEASE_RUN_H_

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "h2d/device/fake/fake_device.h"
#include "h2d/device/faulty/faulty_device.h"
#include "h2d/stager/release_queue.h"

namespace h2d::testing {

struct ReleaseTotals {
  uint64_t pushed = 0;
  uint64_t refused = 0;
  uint64_t put_off = 0;
  uint64_t faults = 0;
};

class ReleaseRun {
 public:
  static constexpr uint64_t kSourceBytes = 64;
  static constexpr uint32_t kStreams = 3;

  // All that the run does follows from `seed`; with 0 the device is kind. Limits are drawn, unless
  // they are given.
  ReleaseRun(uint64_t seed, bool with_faults);
  ReleaseRun(uint64_t seed, const ReleaseQueueOptions& limits, bool keep_trace);

  FakeDevice& fake() { return *fake_; }
  FaultyDevice& faulty() { return *faulty_; }

  // A random step, on this stream where it needs one.
  void Step(uint32_t stream);
  // What the tasks of a run of several do: no holds, captures or faults, which are the device's.
  void SharedStep(uint32_t stream, uint32_t draw);

  void CopyAndPush(uint32_t stream);
  void Flush(uint32_t stream);
  void Poll() { static_cast<void>(queue_->Poll()); }
  void ToggleHold(uint32_t stream);
  void ToggleCapture(uint32_t stream);

  // Ends the run; empty when all was as it should be.
  std::string Verdict();
  std::string Timeline() const { return fake_->Timeline(); }
  void AddTo(ReleaseTotals& totals) const;
  uint64_t refusals() const { return refusals_; }
  uint32_t Draw(uint32_t n) { return static_cast<uint32_t>(random_() % n); }

 private:
  ReleaseRun(uint64_t seed, bool with_faults, const ReleaseQueueOptions* limits, bool keep_trace);

  ReleaseQueueOptions DrawLimits();
  HeldSource NewSource(PinnedBuffer memory) const;
  void PushNothing(uint32_t stream);
  void Push(HeldSource source, uint32_t stream);
  void InjectFault();
  void Fail(std::string what) {
    if (failure_.empty()) failure_ = std::move(what);
  }

  std::mt19937_64 random_;
  const bool with_faults_;
  std::shared_ptr<FakeDevice> fake_;
  std::shared_ptr<FaultyDevice> faulty_;
  std::vector<Stream> streams_;
  std::vector<DevicePtr> targets_;
  ReleaseQueueOptions limits_;
  std::unique_ptr<ReleaseQueue> queue_;
  std::vector<bool> held_;
  std::vector<bool> capturing_;
  std::vector<HeldSource> refused_;
  const std::shared_ptr<uint64_t> ended_ = std::make_shared<uint64_t>(0);
  uint64_t pushed_ = 0;
  uint64_t refusals_ = 0;
  uint64_t put_off_ = 0;
  std::string failure_;
};

}  // namespace h2d::testing

#endif  // H2D_TESTS_UPLOADS_RELEASE_RUN_H_
