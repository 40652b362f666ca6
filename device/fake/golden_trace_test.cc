// The same choices give the same trace, hash for hash, in every build and with both compilers
// (I11).
//
// The literals below were the same under g++ and clang, optimised and not. One that changes means
// that runs no longer replay across builds, or that what the fake does was changed on purpose: then
// the new value is committed with that change.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "h2d/device/fake/fake_device.h"
#include "h2d/device/fake/host_tasks.h"
#include "h2d/device/sync.h"

namespace h2d {
namespace {

// A draw of the test's own, equal on every machine.
class Draws {
 public:
  explicit Draws(uint64_t seed) : state_(seed) {}
  uint32_t Below(uint32_t n) {
    state_ = MixBits(state_ + 0x9e3779b97f4a7c15ULL);
    return static_cast<uint32_t>(state_ >> 33) % n;
  }

 private:
  uint64_t state_;
};

class SeededRun {
 public:
  explicit SeededRun(uint64_t seed, bool detect = true) : draws_(seed) {
    FakeOptions options;
    options.choices = std::make_shared<HashChoices>(seed);
    options.detect_hazards = detect;
    device_ = FakeDevice::Create(options);
    for (const char* name : {"a", "b", "c"}) streams_.push_back(device_->NewStream(name));
    for (int i = 0; i < 3; ++i) {
      targets_.push_back(*device_->AllocateDevice(kBytes));
      slots_.push_back(*device_->AllocatePinned(kBytes));
      events_.push_back(*device_->CreateEvent());
    }
  }

  void Operations(int count) {
    for (int i = 0; i < count; ++i) {
      device_->BeginOperation(next_++);
      Operation();
    }
  }
  void TasksWith(int count) {
    Mutex mutex;
    const auto task = [&] {
      for (int i = 0; i < count; ++i) {
        const MutexLock lock(mutex);
        Operations(1);
      }
    };
    EXPECT_TRUE(RunTasks(*device_, {task, task}));
  }
  FakeDevice& device() { return *device_; }

 private:
  static constexpr uint64_t kBytes = 96;

  void Operation() {
    const Stream& stream = streams_[draws_.Below(3)];
    const size_t slot = draws_.Below(3);
    Event& event = events_[draws_.Below(3)];
    const DevicePtr target = targets_[draws_.Below(3)];
    switch (draws_.Below(8)) {
      case 0:
      case 1:
        device_->OnHostAccess(slots_[slot].bytes(), HostAccess::kWrite);
        std::memset(slots_[slot].bytes().data(), static_cast<int>(next_), kBytes);
        EXPECT_TRUE(device_->CopyAsync(target, slots_[slot].bytes(), stream));
        break;
      case 2: {
        const auto half = slots_[slot].bytes().first(kBytes / 2);
        const std::array<CopyEntry, 2> entries = {CopyEntry{target, half},
                                                  CopyEntry{target + kBytes / 2, half}};
        EXPECT_TRUE(device_->CopyBatchAsync(entries, stream));
        break;
      }
      case 3:
        EXPECT_TRUE(device_->Record(event, stream));
        break;
      case 4:
        EXPECT_TRUE(device_->WaitEvent(stream, event));
        break;
      case 5:
        EXPECT_TRUE(device_->Launch(stream, {.name = "step", .reads = {{target, kBytes}}}));
        break;
      case 6: {
        const Event* const events[] = {&event};
        EXPECT_TRUE(device_->WaitAny(events, {std::chrono::microseconds(10)}));
        break;
      }
      default:
        EXPECT_TRUE(device_->Query(event));
        break;
    }
  }

  Draws draws_;
  std::shared_ptr<FakeDevice> device_;
  std::vector<Stream> streams_;
  std::vector<DevicePtr> targets_;
  std::vector<PinnedBuffer> slots_;
  std::vector<Event> events_;
  uint64_t next_ = 0;
};

TEST(GoldenTrace, ASingleThreadsRun) {
  SeededRun run(1);
  run.Operations(300);
  EXPECT_EQ(run.device().TraceHash(), 18260736132570828873U);
}

TEST(GoldenTrace, ARunOfHostTasks) {
  SeededRun run(2);
  run.TasksWith(60);
  EXPECT_EQ(run.device().TraceHash(), 5860881255490773811U);
}

TEST(GoldenTrace, EqualChoicesRunEquallyAndOthersDoNot) {
  SeededRun first(3);
  SeededRun same(3);
  SeededRun other(4);
  for (SeededRun* run : {&first, &same, &other}) run->Operations(50);
  EXPECT_EQ(first.device().TraceHash(), same.device().TraceHash());
  EXPECT_NE(first.device().TraceHash(), other.device().TraceHash());
  EXPECT_EQ(first.device().Timeline(), same.device().Timeline());
}

TEST(GoldenTrace, TheDetectorAndTheKeptTraceChangeNothing) {
  SeededRun with(5, true);
  SeededRun without(5, false);
  with.Operations(100);
  without.Operations(100);
  EXPECT_EQ(with.device().TraceHash(), without.device().TraceHash());
}

}  // namespace
}  // namespace h2d
