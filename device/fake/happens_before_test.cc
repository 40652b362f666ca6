// The detector against a judge that knows no clocks, on small random programs.
//
// The judge enumerates interleavings. It holds what was issued, by whom and in which order, and
// what queries, waits and loads answered; from that it says what may happen next in each state, and
// walks all states that can be reached. Two conflicting accesses that may both happen next in one
// of them are a race: some interleaving makes them adjacent in either order. A use of an event that
// may happen before its record call is an unordered record. The detector has to report something
// exactly when the judge finds something, and each report has to be one of the judge's races.
//
// Half of the programs are random, half are patterns that are right by themselves; of those that
// the judge finds right, one with a step of synchronisation removed is judged, too. At most 3 lanes
// and 12 steps. H2D_PROGRAMS: how many.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <unordered_set>
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
constexpr uint32_t kMaxSteps = 12;

enum class Kind : uint8_t {
  kFill,
  kCopy,
  kRead,
  kHostFunction,  // fills a slot
  kGraph,         // writes a target; there is one graph
  kRecord,
  kWait,
  kSynchronize,
  kQuery,
  kWaitAny,
  kStore,
  kLoad,
};
constexpr uint32_t kKinds = 12;

struct Step {
  Kind kind;
  uint32_t stream;
  uint32_t event;  // of a wait for any: which one it answers
  uint32_t slot;
  uint32_t target;
  uint32_t flag;
  bool late;  // a query answers that the event is pending
};
using Task = std::vector<Step>;

enum class Streams : uint8_t { kOrdinary, kBlockingAndLegacy, kOrdinaryAndLegacy };
struct Program {
  Streams streams = Streams::kOrdinary;
  std::vector<Task> tasks;  // each begins when the one before has ended, and nothing orders the two
};

// What happened, in order: what the judge is told besides the program.
struct Happened {
  const Step* step;
  uint32_t task;
  uint32_t answer;  // a query: 1 for complete; a wait for any: its index; a load: the store, from 1
};

std::string Text(const Program& program) {
  constexpr std::array<const char*, kKinds> kNames = {"fill",  "copy",     "read",  "host function",
                                                      "graph", "record",   "wait",  "synchronize",
                                                      "query", "wait any", "store", "load"};
  std::string text = "streams " + std::to_string(static_cast<int>(program.streams)) + "\n";
  for (size_t task = 0; task < program.tasks.size(); ++task) {
    for (const Step& s : program.tasks[task]) {
      text += "task " + std::to_string(task) + ": " + kNames[static_cast<size_t>(s.kind)] +
              " stream " + std::to_string(s.stream) + " event " + std::to_string(s.event) +
              " slot " + std::to_string(s.slot) + " target " + std::to_string(s.target) + " flag " +
              std::to_string(s.flag) + (s.late ? " late" : "") + "\n";
    }
  }
  return text;
}

std::string StreamName(Streams streams, uint32_t stream) {
  const bool legacy = stream == 1 && streams != Streams::kOrdinary;
  return legacy ? "legacy stream" : "stream " + std::to_string(stream);
}

using Race = std::tuple<std::string, std::string, std::string>;  // memory, lanes in order

Race RaceOf(const std::string& memory, const std::string& one, const std::string& other) {
  return {memory, std::min(one, other), std::max(one, other)};
}

class Judge {
 public:
  Judge(const Program& program, const std::vector<Happened>& happened) : program_(program) {
    for (const Happened& what : happened) Add(what);
    Walk();
  }

  bool FoundSomething() const noexcept { return early_use_ || !races_.empty(); }
  bool early_use() const noexcept { return early_use_; }
  const std::set<Race>& races() const noexcept { return races_; }

 private:
  static constexpr int kNone = -1;
  struct Access {
    std::string memory;
    bool writes;
    bool by_function = false;  // a host function
    bool early = false;        // the first chance to read a source, before the copy's turn comes
  };
  struct Node {
    uint64_t needs = 0;  // what must have happened before it can
    std::string lane;
    std::vector<Access> accesses;
    uint64_t conflicts = 0;
    int record_call = kNone;  // of the event that this uses
  };

  static uint64_t Bit(int node) noexcept { return node == kNone ? 0 : uint64_t{1} << node; }
  int AddNode(std::string lane, uint64_t needs) {
    nodes_.push_back({.needs = needs, .lane = std::move(lane), .accesses = {}});
    return static_cast<int>(nodes_.size()) - 1;
  }
  Node& At(int node) { return nodes_[static_cast<size_t>(node)]; }

  // The host's next call.
  int Call(uint32_t task, uint64_t needs = 0) {
    const bool alone = program_.tasks.size() == 1;
    const int call =
        AddNode(alone ? "host" : "task " + std::to_string(task), needs | Bit(last_call_[task]));
    last_call_[task] = call;
    return call;
  }
  // Work of a stream, in the stream's order; legacy and blocking streams wait for each other's.
  int Work(uint32_t stream, int call) {
    uint64_t needs = Bit(call) | Bit(last_work_[stream]);
    if (program_.streams == Streams::kBlockingAndLegacy) needs |= Bit(last_work_[1 - stream]);
    return last_work_[stream] = AddNode(StreamName(program_.streams, stream), needs);
  }

  void Add(const Happened& what) {
    const Step& s = *what.step;
    const int call = Call(what.task);
    const std::string slot = "slot " + std::to_string(s.slot);
    const std::string target = "target " + std::to_string(s.target);
    switch (s.kind) {
      case Kind::kFill:
        At(call).accesses = {{slot, true}};
        break;
      case Kind::kCopy: {
        // The source is read at any time from the call to the copy's end; only what a host function
        // writes is read in stream order.
        const int read = AddNode(StreamName(program_.streams, s.stream), Bit(call));
        At(read).accesses = {{.memory = slot, .writes = false, .early = true}};
        At(Work(s.stream, read)).accesses = {{slot, false}, {target, true}};
        break;
      }
      case Kind::kRead:
        At(Work(s.stream, call)).accesses = {{target, false}};
        break;
      case Kind::kHostFunction:
        At(Work(s.stream, call)).accesses = {{slot, true, true}};
        break;
      case Kind::kGraph: {
        const int work = Work(s.stream, call);
        At(work).needs |= Bit(std::exchange(last_launch_, work));
        At(work).accesses = {{"target 0", true}};
        break;
      }
      case Kind::kRecord:
        record_call_[s.event] = call;
        record_[s.event] = Work(s.stream, call);
        break;
      default:
        AddSynchronisation(what, call);
    }
  }

  void AddSynchronisation(const Happened& what, int call) {
    const Step& s = *what.step;
    const bool recorded = record_[s.event] != kNone;
    switch (s.kind) {
      case Kind::kWait:
        Uses(call, s.event);
        if (recorded) At(Work(s.stream, call)).needs |= Bit(record_[s.event]);
        break;
      case Kind::kSynchronize:
        Uses(call, s.event);
        Call(what.task, Bit(record_[s.event]));
        break;
      case Kind::kQuery:
        Uses(call, s.event);
        if (what.answer == 1) Call(what.task, Bit(record_[s.event]));
        break;
      case Kind::kWaitAny:
        // It looks at one after the other until one is complete without having been recorded.
        Uses(call, 0);
        if (record_[0] != kNone) Uses(Call(what.task), 1);
        Call(what.task, Bit(record_[what.answer]));
        break;
      case Kind::kStore:
        stores_.push_back(call);
        break;
      case Kind::kLoad:
        if (what.answer != 0) At(call).needs |= Bit(stores_[what.answer - 1]);
        break;
      default:
        break;
    }
  }

  void Uses(int node, uint32_t event) { At(node).record_call = record_call_[event]; }

  static bool Conflict(const Access& a, const Access& b) {
    if ((a.early && b.by_function) || (b.early && a.by_function)) return false;
    return a.memory == b.memory && (a.writes || b.writes);
  }
  static bool Conflict(const Node& a, const Node& b) {
    for (const Access& one : a.accesses) {
      for (const Access& other : b.accesses) {
        if (Conflict(one, other)) return true;
      }
    }
    return false;
  }

  void Walk() {
    for (Node& node : nodes_) {
      for (size_t i = 0; i < nodes_.size(); ++i) {
        if (&nodes_[i] != &node && Conflict(node, nodes_[i])) node.conflicts |= uint64_t{1} << i;
      }
    }
    std::unordered_set<uint64_t> seen = {0};
    std::vector<uint64_t> left = {0};
    while (!left.empty()) {
      const uint64_t state = left.back();
      left.pop_back();
      const uint64_t next = Next(state);
      for (size_t i = 0; i < nodes_.size(); ++i) {
        const uint64_t bit = uint64_t{1} << i;
        if ((next & bit) == 0) continue;
        const Node& node = nodes_[i];
        if (node.record_call != kNone && (state & Bit(node.record_call)) == 0) early_use_ = true;
        if ((node.conflicts & next) != 0) FoundRaces(node, next);
        if (seen.insert(state | bit).second) left.push_back(state | bit);
      }
    }
  }

  // What may happen next when `state` has happened.
  uint64_t Next(uint64_t state) const {
    uint64_t next = 0;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const uint64_t bit = uint64_t{1} << i;
      if ((state & bit) == 0 && (nodes_[i].needs & ~state) == 0) next |= bit;
    }
    return next;
  }

  void FoundRaces(const Node& node, uint64_t next) {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if ((node.conflicts & next & uint64_t{1} << i) == 0) continue;
      for (const Access& one : node.accesses) {
        for (const Access& other : nodes_[i].accesses) {
          if (!Conflict(one, other)) continue;
          races_.insert(RaceOf(one.memory, node.lane, nodes_[i].lane));
        }
      }
    }
  }

  const Program& program_;
  std::vector<Node> nodes_;
  std::array<int, kObjects> last_call_{kNone, kNone};
  std::array<int, kObjects> last_work_{kNone, kNone};
  std::array<int, kObjects> record_call_{kNone, kNone};
  std::array<int, kObjects> record_{kNone, kNone};
  std::vector<int> stores_;
  int last_launch_ = kNone;
  bool early_use_ = false;
  std::set<Race> races_;
};

// Answers as the steps say; one task after the other.
class StepChoices final : public ChoiceSource {
 public:
  bool late = false;
  uint32_t wait_answer = 0;

 private:
  uint32_t Draw(const ChoicePoint& point, uint32_t) override {
    if (point.site == ChoiceSite::kSeenLate) return late ? 1 : 0;
    return point.site == ChoiceSite::kWaitAnswer ? wait_answer : 0;
  }
};

// Nothing takes time, so that whether a query may answer "complete" does not depend on latencies.
FakeOptions OptionsFor(std::shared_ptr<ChoiceSource> choices) {
  FakeOptions options;
  options.choices = std::move(choices);
  options.latencies.copy = options.latencies.host_record_call = VirtualTime(0);
  options.latencies.copy_bytes_per_second = 0;
  options.keep_trace = false;
  return options;
}

class Runner {
 public:
  explicit Runner(const Program& program, bool keep_trace = false) : program_(program) {
    FakeOptions options = OptionsFor(choices_);
    options.keep_trace = keep_trace;
    device_ = FakeDevice::Create(options);
    const bool blocking = program.streams == Streams::kBlockingAndLegacy;
    const bool legacy = program.streams != Streams::kOrdinary;
    streams_.push_back(device_->NewStream(
        "stream 0", blocking ? StreamFlags::kBlocking : StreamFlags::kNonBlocking));
    streams_.push_back(legacy ? device_->LegacyStream() : device_->NewStream("stream 1"));
    for (uint32_t i = 0; i < kObjects; ++i) {
      events_.push_back(*device_->CreateEvent());
      slots_.push_back(*device_->AllocatePinned(kBytes));
      device_->NamePinned(slots_[i].bytes().data(), "slot " + std::to_string(i));
      targets_.push_back(*device_->AllocateDevice(kBytes, "target " + std::to_string(i)));
    }
    Run();
  }
  ~Runner() { EXPECT_TRUE(device_->SynchronizeDevice()); }

  const std::vector<Happened>& happened() const noexcept { return happened_; }
  FakeDevice& device() noexcept { return *device_; }

 private:
  void Run() {
    if (Uses(Kind::kGraph)) Capture();
    std::vector<std::function<void()>> tasks;
    for (uint32_t task = 0; task < program_.tasks.size(); ++task) {
      tasks.push_back([this, task] { RunTask(task); });
    }
    if (tasks.size() == 1) {
      tasks[0]();
    } else {
      EXPECT_TRUE(RunTasks(*device_, std::move(tasks)));
    }
    device_->RunUntilIdle();  // what a host function does is known when it has run
  }

  bool Uses(Kind kind) const {
    return std::ranges::any_of(program_.tasks, [kind](const Task& task) {
      return std::ranges::any_of(task, [kind](const Step& step) { return step.kind == kind; });
    });
  }
  KernelSpec Kernel() const {
    KernelSpec kernel;
    kernel.duration = VirtualTime(0);
    return kernel;
  }
  void Capture() {
    const Stream stream = device_->NewStream("captured");
    EXPECT_TRUE(device_->BeginCapture(stream));
    KernelSpec kernel = Kernel();
    kernel.writes = {{targets_[0], kBytes}};
    EXPECT_TRUE(device_->Launch(stream, kernel));
    graph_.push_back(*device_->EndCapture(stream));
  }

  void RunTask(uint32_t task) {
    for (const Step& step : program_.tasks[task]) {
      const uint32_t answer = Do(step);
      happened_.push_back({&step, task, answer});
    }
  }

  uint32_t Do(const Step& s) {
    const Stream& stream = streams_[s.stream];
    const std::span<const std::byte> slot = slots_[s.slot].bytes();
    switch (s.kind) {
      case Kind::kFill:
        device_->OnHostAccess(slot, HostAccess::kWrite);
        return 0;
      case Kind::kCopy:
        EXPECT_TRUE(device_->CopyAsync(targets_[s.target], slot, stream));
        return 0;
      case Kind::kRead: {
        KernelSpec kernel = Kernel();
        kernel.reads = {{targets_[s.target], kBytes}};
        EXPECT_TRUE(device_->Launch(stream, kernel));
        return 0;
      }
      case Kind::kHostFunction:
        EXPECT_TRUE(device_->LaunchHostFunc(
            stream, [this, slot] { device_->OnHostAccess(slot, HostAccess::kWrite); }));
        return 0;
      case Kind::kGraph:
        EXPECT_TRUE(device_->LaunchGraph(graph_[0], stream));
        return 0;
      case Kind::kRecord:
        EXPECT_TRUE(device_->Record(events_[s.event], stream));
        return 0;
      default:
        return Synchronise(s, stream);
    }
  }

  uint32_t Synchronise(const Step& s, const Stream& stream) {
    const Event* const both[] = {&events_[0], &events_[1]};
    choices_->late = s.kind == Kind::kWaitAny || s.late;
    choices_->wait_answer = s.event;
    switch (s.kind) {
      case Kind::kWait:
        EXPECT_TRUE(device_->WaitEvent(stream, events_[s.event]));
        return 0;
      case Kind::kSynchronize:
        EXPECT_TRUE(device_->Synchronize(events_[s.event]));
        return 0;
      case Kind::kQuery:
        return *device_->Query(events_[s.event]) == EventState::kComplete ? 1 : 0;
      case Kind::kWaitAny:
        return static_cast<uint32_t>(**device_->WaitAny(both, {.timeout = VirtualTime(1'000'000)}));
      case Kind::kStore:
        flags_[s.flag].Store(++stores_);
        return 0;
      case Kind::kLoad:
        return flags_[s.flag].Load();
      default:
        return 0;
    }
  }

  const Program& program_;
  std::shared_ptr<StepChoices> choices_ = std::make_shared<StepChoices>();
  std::shared_ptr<FakeDevice> device_;
  std::vector<Stream> streams_;
  std::vector<Event> events_;
  std::vector<PinnedBuffer> slots_;
  std::vector<DevicePtr> targets_;
  std::vector<FakeGraph> graph_;
  std::array<Atomic<uint32_t>, kObjects> flags_;
  uint32_t stores_ = 0;
  std::vector<Happened> happened_;
};

class Random {
 public:
  explicit Random(uint64_t seed) noexcept : state_(seed) {}
  uint32_t Below(uint32_t n) noexcept {
    state_ = MixBits(state_ + 0x9e3779b97f4a7c15ULL);
    return static_cast<uint32_t>(state_ >> 33) % n;
  }

 private:
  uint64_t state_;
};

Step DrawStep(Random& random, Kind kind, uint32_t streams) {
  Step step{};
  step.kind = kind;
  step.stream = random.Below(streams);
  step.event = random.Below(kObjects);
  step.slot = random.Below(kObjects);
  step.target = random.Below(kObjects);
  step.flag = random.Below(kObjects);
  step.late = random.Below(2) == 0;
  return step;
}

// An access, what hands it on, and an access that conflicts with it: right as it is.
void AppendPattern(Random& random, Program& program) {
  const bool two_tasks = program.tasks.size() == 2;
  Task& early = program.tasks.front();
  Task& late = program.tasks.back();
  constexpr std::array<Kind, 4> kFirsts = {Kind::kCopy, Kind::kHostFunction, Kind::kGraph,
                                           Kind::kRead};
  constexpr std::array<Kind, 3> kHandsOn = {Kind::kSynchronize, Kind::kQuery, Kind::kWaitAny};
  const Kind first = two_tasks ? Kind::kCopy : kFirsts[random.Below(4)];
  const bool on_device =
      first == Kind::kGraph || first == Kind::kRead || (!two_tasks && random.Below(2) == 0);
  Step step = DrawStep(random, first, two_tasks ? 1 : 2);
  if (first == Kind::kGraph) step.target = 0;
  step.late = false;
  const auto add = [&](Task& task, Kind kind) {
    step.kind = kind;
    task.push_back(step);
  };
  add(early, first);
  add(early, Kind::kRecord);
  if (two_tasks) {
    add(early, Kind::kStore);
    add(late, Kind::kLoad);
  }
  if (on_device) {
    step.stream = two_tasks ? 0 : 1 - step.stream;
    add(late, Kind::kWait);
    add(late, Kind::kCopy);
  } else {
    add(late, kHandsOn[random.Below(3)]);
    add(late, Kind::kFill);
  }
}

// Three lanes at most: one task and two streams, or two tasks and one. Any steps, or patterns that
// are right by themselves, with a step or two between them.
Program Draw(Random& random) {
  Program program;
  const uint32_t tasks = 1 + random.Below(2);
  program.streams = tasks == 1 ? static_cast<Streams>(random.Below(3)) : Streams::kOrdinary;
  program.tasks.resize(tasks);
  const bool patterns = random.Below(2) == 0;
  if (patterns) {
    for (uint32_t left = 1 + random.Below(2); left > 0; --left) AppendPattern(random, program);
  }
  const uint32_t steps = patterns ? random.Below(2) : 3 + random.Below(kMaxSteps - 2);
  for (uint32_t i = 0; i < steps; ++i) {
    Task& task = program.tasks[random.Below(tasks)];
    const auto kind = static_cast<Kind>(random.Below(kKinds));
    task.insert(task.begin() + random.Below(static_cast<uint32_t>(task.size()) + 1),
                DrawStep(random, kind, tasks == 1 ? 2 : 1));
  }
  return program;
}

// Without one of its steps of synchronisation, when it has any.
bool RemoveAnEdge(Program& program, Random& random) {
  std::vector<std::pair<Task*, size_t>> edges;
  for (Task& task : program.tasks) {
    for (size_t i = 0; i < task.size(); ++i) {
      if (task[i].kind >= Kind::kRecord) edges.emplace_back(&task, i);
    }
  }
  if (edges.empty()) return false;
  const auto [task, at] = edges[random.Below(static_cast<uint32_t>(edges.size()))];
  task->erase(task->begin() + static_cast<std::ptrdiff_t>(at));
  return true;
}

class HappensBefore : public ::testing::Test {
 protected:
  // Compares the two on one program; answers whether they found it right.
  bool Compare(const Program& program) {
    Runner runner(program);
    const Judge judge(program, runner.happened());
    ++programs_;
    const bool reported = runner.device().hazard_count() != 0;
    EXPECT_EQ(reported, judge.FoundSomething()) << Explain(program);
    for (const Hazard& hazard : runner.device().hazards()) {
      EXPECT_TRUE(IsTrue(hazard, judge)) << hazard.ToString() << Explain(program);
    }
    return !judge.FoundSomething();
  }

  uint64_t programs_ = 0;

 private:
  static bool IsTrue(const Hazard& hazard, const Judge& judge) {
    if (hazard.kind == HazardKind::kUnorderedRecord) {
      return judge.early_use() && !hazard.missing.empty();
    }
    const bool names_lanes = hazard.missing.find(hazard.first.lane) != std::string::npos &&
                             hazard.missing.find(hazard.second.lane) != std::string::npos;
    const Race race = RaceOf(hazard.second.memory, hazard.first.lane, hazard.second.lane);
    return names_lanes && (judge.races().contains(race) || judge.early_use());
  }
  static std::string Explain(const Program& program) {
    Runner runner(program, true);
    return "\n" + Text(program) + runner.device().Timeline();
  }
};

TEST_F(HappensBefore, TheDetectorAgreesWithTheEnumerationOfAllInterleavings) {
  const char* wanted = std::getenv("H2D_PROGRAMS");
  const uint64_t programs = wanted == nullptr ? 2'000 : std::strtoull(wanted, nullptr, 10);
  uint64_t right = 0;
  uint64_t edges_removed = 0;
  uint64_t edges_missed = 0;
  for (uint64_t seed = 0; programs_ < programs && !HasFailure(); ++seed) {
    Random random(seed);
    Program program = Draw(random);
    SCOPED_TRACE("seed " + std::to_string(seed));
    if (!Compare(program)) continue;
    ++right;
    if (!RemoveAnEdge(program, random)) continue;
    ++edges_removed;
    edges_missed += Compare(program) ? 0 : 1;
  }
  std::cout << programs_ << " programs, " << right << " of them drawn right, " << edges_removed
            << " without an edge, " << edges_missed << " of which are wrong\n";
  // All verdicts are common, or the comparison would say little.
  EXPECT_GT(right, programs / 6);
  EXPECT_GT(edges_missed, programs / 40);
}

}  // namespace
}  // namespace h2d
