// The detector against an independent judge, on small random programs.
//
// The judge knows no clocks: it draws the graph of all "must come before" edges of the calls and of
// what they make the device do, and asks for each pair of conflicting accesses whether a path leads
// from one to the other. Without a path some schedule makes the two adjacent: a race. The detector
// has to report something exactly when the judge finds a race (or a use of an event that its record
// does not come before). After a first race the two may go on differently, so only "any" is
// compared.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "h2d/device/fake/choice.h"
#include "h2d/device/fake/fake_device.h"
#include "h2d/device/fake/host_tasks.h"
#include "h2d/device/sync.h"

namespace h2d {
namespace {

constexpr uint32_t kObjects = 2;  // of each kind: streams, events, slots, targets, flags
constexpr uint64_t kBytes = 8;

enum class Kind : uint8_t { kFill, kCopy, kRead, kRecord, kWait, kSynchronize, kStore, kLoad };
constexpr uint32_t kKinds = 8;

struct Step {
  Kind kind;
  uint32_t stream;
  uint32_t event;
  uint32_t slot;
  uint32_t target;
  uint32_t flag;
};
using Task = std::vector<Step>;
using Program = std::vector<Task>;

std::string Text(const Program& program) {
  constexpr std::array<const char*, kKinds> kNames = {"fill", "copy",        "read",  "record",
                                                      "wait", "synchronize", "store", "load"};
  std::string text;
  for (size_t task = 0; task < program.size(); ++task) {
    for (const Step& s : program[task]) {
      text += "task " + std::to_string(task) + ": " + kNames[static_cast<size_t>(s.kind)] +
              " stream " + std::to_string(s.stream) + " event " + std::to_string(s.event) +
              " slot " + std::to_string(s.slot) + " target " + std::to_string(s.target) + " flag " +
              std::to_string(s.flag) + "\n";
    }
  }
  return text;
}

// The graph of what must come before what. Tasks run one after the other here (the kindest choice),
// but nothing orders them unless a flag that one stored was loaded by the other.
class Judge {
 public:
  bool FindsRace(const Program& program) {
    for (const Task& task : program) {
      int previous = kNone;
      for (const Step& step : task) {
        const int call = AddNode();
        Edge(previous, call);
        Add(step, call);
        previous = call;
      }
    }
    return early_use_ || AnyUnordered();
  }

 private:
  static constexpr int kNone = -1;
  struct Use {
    int node;
    uint32_t place;  // slots first, then targets
    bool writes;
  };

  int AddNode() {
    before_.emplace_back();
    return static_cast<int>(before_.size()) - 1;
  }
  void Edge(int from, int to) {
    if (from != kNone) before_[static_cast<size_t>(to)].push_back(from);
  }
  // A node of the stream's work.
  int Work(uint32_t stream, int call) {
    const int work = AddNode();
    Edge(call, work);
    Edge(std::exchange(last_work_[stream], work), work);
    return work;
  }

  void Add(const Step& s, int call) {
    switch (s.kind) {
      case Kind::kFill:
        uses_.push_back({call, s.slot, true});
        break;
      case Kind::kCopy: {
        const int reads = AddNode();  // any time from the call to the copy's end
        Edge(call, reads);
        const int work = Work(s.stream, call);
        Edge(reads, work);
        uses_.push_back({reads, s.slot, false});
        uses_.push_back({work, kObjects + s.target, true});
        break;
      }
      case Kind::kRead:
        uses_.push_back({Work(s.stream, call), kObjects + s.target, false});
        break;
      case Kind::kRecord:
        record_call_[s.event] = call;
        record_[s.event] = Work(s.stream, call);
        break;
      case Kind::kWait:
        CheckRecord(s.event, call);
        Edge(record_[s.event], Work(s.stream, call));
        break;
      case Kind::kSynchronize:
        CheckRecord(s.event, call);
        Edge(record_[s.event], call);
        break;
      case Kind::kStore:
        stored_[s.flag] = call;
        break;
      case Kind::kLoad:
        Edge(stored_[s.flag], call);
        break;
    }
  }

  void CheckRecord(uint32_t event, int use) {
    if (record_call_[event] != kNone && !Path(record_call_[event], use)) early_use_ = true;
  }

  bool Path(int from, int to) const {
    std::vector<bool> seen(before_.size(), false);
    std::vector<int> left = {to};
    while (!left.empty()) {
      const int node = left.back();
      left.pop_back();
      if (node == from) return true;
      if (seen[static_cast<size_t>(node)]) continue;
      seen[static_cast<size_t>(node)] = true;
      const std::vector<int>& before = before_[static_cast<size_t>(node)];
      left.insert(left.end(), before.begin(), before.end());
    }
    return false;
  }

  bool AnyUnordered() const {
    for (size_t i = 0; i < uses_.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        const Use& a = uses_[i];
        const Use& b = uses_[j];
        if (a.place != b.place || (!a.writes && !b.writes) || a.node == b.node) continue;
        if (!Path(a.node, b.node) && !Path(b.node, a.node)) return true;
      }
    }
    return false;
  }

  std::vector<std::vector<int>> before_;
  std::vector<Use> uses_;
  std::array<int, kObjects> last_work_{kNone, kNone};
  std::array<int, kObjects> record_call_{kNone, kNone};
  std::array<int, kObjects> record_{kNone, kNone};
  std::array<int, kObjects> stored_{kNone, kNone};
  bool early_use_ = false;
};

class Runner {
 public:
  Runner() {
    for (uint32_t i = 0; i < kObjects; ++i) {
      streams_.push_back(device_->NewStream());
      events_.push_back(*device_->CreateEvent());
      slots_.push_back(*device_->AllocatePinned(kBytes));
      targets_.push_back(*device_->AllocateDevice(kBytes));
    }
  }
  ~Runner() { EXPECT_TRUE(device_->SynchronizeDevice()); }

  bool FindsRace(const Program& program) {
    std::vector<std::function<void()>> tasks;
    for (const Task& task : program) {
      tasks.push_back([this, &task] {
        for (const Step& step : task) Do(step);
      });
    }
    EXPECT_TRUE(RunTasks(*device_, std::move(tasks)));
    return device_->hazard_count() != 0;
  }
  std::string Timeline() const { return device_->Timeline(); }

 private:
  void Do(const Step& s) {
    const Stream& stream = streams_[s.stream];
    const std::span<const std::byte> slot = slots_[s.slot].bytes();
    switch (s.kind) {
      case Kind::kFill:
        return device_->OnHostAccess(slot, HostAccess::kWrite);
      case Kind::kCopy:
        EXPECT_TRUE(device_->CopyAsync(targets_[s.target], slot, stream));
        return;
      case Kind::kRead:
        EXPECT_TRUE(device_->Launch(stream, {.reads = {{targets_[s.target], kBytes}}}));
        return;
      case Kind::kRecord:
        EXPECT_TRUE(device_->Record(events_[s.event], stream));
        return;
      case Kind::kWait:
        EXPECT_TRUE(device_->WaitEvent(stream, events_[s.event]));
        return;
      case Kind::kSynchronize:
        // A wait of the other task is served first only if it advances time: there is none to
        // serve.
        EXPECT_TRUE(device_->Synchronize(events_[s.event]));
        return;
      case Kind::kStore:
        return flags_[s.flag].Store(1);
      case Kind::kLoad:
        static_cast<void>(flags_[s.flag].Load());
        return;
    }
  }

  std::shared_ptr<FakeDevice> device_ = FakeDevice::Create();
  std::vector<Stream> streams_;
  std::vector<Event> events_;
  std::vector<PinnedBuffer> slots_;
  std::vector<DevicePtr> targets_;
  std::array<Atomic<int>, kObjects> flags_;
};

Program Draw(uint64_t seed) {
  uint64_t state = seed;
  const auto below = [&](uint32_t n) {
    state = MixBits(state + 0x9e3779b97f4a7c15ULL);
    return static_cast<uint32_t>(state >> 33) % n;
  };
  Program program(1 + below(2));
  for (Task& task : program) {
    task.resize(2 + below(8));
    for (Step& step : task) {
      step.kind = static_cast<Kind>(below(kKinds));
      step.stream = below(kObjects);
      step.event = below(kObjects);
      step.slot = below(kObjects);
      step.target = below(kObjects);
      step.flag = below(kObjects);
    }
  }
  return program;
}

// A task's wait lets the next task run, so a program with two tasks must not wait in the first:
// what ran when would no longer be the order that the judge assumes. Its waits become stream waits.
void WaitInTheLastTaskOnly(Program& program) {
  for (size_t i = 0; i + 1 < program.size(); ++i) {
    for (Step& step : program[i]) {
      if (step.kind == Kind::kSynchronize) step.kind = Kind::kWait;
    }
  }
}

TEST(HappensBefore, TheDetectorAgreesWithPathsInTheGraphOfEdges) {
  constexpr uint64_t kPrograms = 3'000;
  uint64_t races = 0;
  for (uint64_t seed = 0; seed < kPrograms; ++seed) {
    Program program = Draw(seed);
    WaitInTheLastTaskOnly(program);
    const bool expected = Judge().FindsRace(program);
    Runner runner;
    const bool found = runner.FindsRace(program);
    ASSERT_EQ(found, expected) << "seed " << seed << "\n" << Text(program) << runner.Timeline();
    races += expected ? 1 : 0;
  }
  // Both verdicts are common, or the comparison would say little.
  EXPECT_GT(races, kPrograms / 5);
  EXPECT_LT(races, kPrograms * 4 / 5);
}

}  // namespace
}  // namespace h2d
