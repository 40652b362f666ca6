#include "h2d/device/fake/testing/small_program.h"

#include <algorithm>
#include <array>
#include <utility>

#include "h2d/device/fake/choice.h"

namespace h2d::testing {
namespace {

constexpr std::array<const char*, kStepKinds> kKindNames = {"fill",
                                                            "host read",
                                                            "copy",
                                                            "kernel",
                                                            "host function",
                                                            "graph",
                                                            "read back",
                                                            "record",
                                                            "wait",
                                                            "synchronize",
                                                            "query",
                                                            "wait any",
                                                            "synchronize stream",
                                                            "query stream",
                                                            "synchronize device",
                                                            "store",
                                                            "load"};

constexpr std::array<const char*, 3> kStoreNames = {"", " (stores, then touches)",
                                                    " (touches, then stores)"};

std::string Text(const Step& s) {
  return std::string(kKindNames[static_cast<size_t>(s.kind)]) + (s.writes ? " (writes)" : "") +
         kStoreNames[static_cast<size_t>(s.stores)] + " stream " + std::to_string(s.stream) +
         " event " + std::to_string(s.event) + " slot " + std::to_string(s.slot) + " target " +
         std::to_string(s.target) + " [" + std::to_string(s.begin) + "," + std::to_string(s.end) +
         ") flag " + std::to_string(s.flag) + (s.late ? " late" : "") + (s.hold ? " hold" : "") +
         "\n";
}

Step DrawStep(Random& random, StepKind kind, uint32_t streams) {
  constexpr std::array<std::array<uint64_t, 2>, 4> kRanges = {{{0, 8}, {0, 4}, {4, 8}, {3, 5}}};
  Step step;
  step.kind = kind;
  step.stream = random.Below(streams);
  step.event = random.Below(kObjects);
  step.slot = random.Below(kObjects);
  step.target = random.Below(kObjects);
  step.flag = random.Below(kObjects);
  const auto& range = kRanges[random.Below(6) % kRanges.size()];  // all of it, more often
  step.begin = range[0];
  step.end = range[1];
  step.writes = random.Below(2) == 0;
  step.late = random.Below(2) == 0;
  step.hold = random.Below(5) == 0;
  return step;
}

// An access, what hands it on, and an access that conflicts with it: right as it is.
Task DrawPattern(Random& random, const Program& program, uint32_t streams, size_t& handed_on_at) {
  constexpr std::array<StepKind, 4> kFirsts = {StepKind::kCopy, StepKind::kHostFunction,
                                               StepKind::kGraph, StepKind::kKernel};
  constexpr std::array<StepKind, 5> kHandsOn = {StepKind::kSynchronize, StepKind::kQuery,
                                                StepKind::kWaitAny, StepKind::kSynchronizeStream,
                                                StepKind::kQueryStream};
  const bool two_tasks = program.tasks() == 2;
  const StepKind first = two_tasks ? StepKind::kCopy : kFirsts[random.Below(4)];
  const bool on_device = first == StepKind::kGraph || first == StepKind::kKernel ||
                         (first == StepKind::kCopy && random.Below(2) == 0);
  Step step = DrawStep(random, first, streams);
  if (first == StepKind::kGraph) step.target = program.graph.front().target;
  step.late = step.hold = false;
  Task pattern;
  const auto add = [&](StepKind kind) {
    step.kind = kind;
    pattern.push_back(step);
  };
  add(first);
  add(StepKind::kRecord);
  if (two_tasks) add(StepKind::kStore);
  handed_on_at = pattern.size();
  if (two_tasks) add(StepKind::kLoad);
  if (on_device) {
    step.stream = streams - 1 - step.stream;
    add(StepKind::kWait);
    add(StepKind::kCopy);
  } else {
    add(kHandsOn[random.Below(5)]);
    add(StepKind::kFill);
  }
  return pattern;
}

// A host function that touches a slot and stores into a flag, and a task that may see the flag.
Task DrawFunctionPattern(Random& random, size_t& handed_on_at) {
  Step step = DrawStep(random, StepKind::kHostFunction, 1);
  step.stores = static_cast<FunctionStores>(1 + random.Below(2));
  step.late = true;  // the query only lets the stream get on
  step.hold = false;
  Task pattern;
  for (const StepKind kind :
       {StepKind::kHostFunction, StepKind::kQueryStream, StepKind::kLoad, StepKind::kFill}) {
    step.kind = kind;
    pattern.push_back(step);
  }
  handed_on_at = 1;
  return pattern;
}

void AppendPattern(Random& random, Program& program, uint32_t streams) {
  size_t handed_on_at = 0;
  const bool functions = program.tasks() == 2 && program.runs.size() == 1 && random.Below(3) == 0;
  const Task pattern = functions ? DrawFunctionPattern(random, handed_on_at)
                                 : DrawPattern(random, program, streams, handed_on_at);
  if (program.steps() + pattern.size() > kMaxSteps) return;
  Run& run = program.runs[random.Below(static_cast<uint32_t>(program.runs.size()))];
  const auto middle = pattern.begin() + static_cast<std::ptrdiff_t>(handed_on_at);
  run.front().insert(run.front().end(), pattern.begin(), middle);
  run.back().insert(run.back().end(), middle, pattern.end());
}

void InsertStep(Random& random, Program& program, uint32_t streams) {
  auto kind = static_cast<StepKind>(random.Below(kStepKinds));
  // A read back by one task waits, and lets the other go on in its midst.
  if (kind == StepKind::kReadBack && program.tasks() == 2) kind = StepKind::kHostRead;
  Step step = DrawStep(random, kind, streams);
  // Locks and atomics are edges between the tasks of one run.
  if (kind == StepKind::kHostFunction && program.tasks() == 2 && program.runs.size() == 1) {
    step.stores = static_cast<FunctionStores>(random.Below(3));
  }
  Run& run = program.runs[random.Below(static_cast<uint32_t>(program.runs.size()))];
  Task& task = run[random.Below(static_cast<uint32_t>(run.size()))];
  task.insert(task.begin() + random.Below(static_cast<uint32_t>(task.size()) + 1), step);
}

void DrawGraph(Random& random, Program& program, bool forked) {
  for (uint32_t nodes = forked ? 2 : 1; nodes > 0; --nodes) {
    const StepKind kind = random.Below(3) == 0 ? StepKind::kCopy : StepKind::kKernel;
    program.graph.push_back(DrawStep(random, kind, 1));
  }
  program.nested = random.Below(2) == 0;
}

}  // namespace

uint64_t Random::Next() noexcept { return state_ = MixBits(state_ + 0x9e3779b97f4a7c15ULL); }

size_t Program::steps() const noexcept {
  size_t count = 0;
  for (const Run& run : runs) {
    for (const Task& task : run) count += task.size();
  }
  return count;
}

bool Program::Uses(StepKind kind) const noexcept {
  const auto is = [kind](const Step& step) { return step.kind == kind; };
  const auto in_task = [&](const Task& task) { return std::ranges::any_of(task, is); };
  return std::ranges::any_of(runs,
                             [&](const Run& run) { return std::ranges::any_of(run, in_task); });
}

std::string Text(const Program& program) {
  std::string text = "streams " + std::to_string(static_cast<int>(program.streams)) + "\n";
  for (const Step& node : program.graph) {
    text += (program.nested ? "nested graph: " : "graph: ") + Text(node);
  }
  for (size_t run = 0; run < program.runs.size(); ++run) {
    for (size_t task = 0; task < program.runs[run].size(); ++task) {
      for (const Step& step : program.runs[run][task]) {
        text += "run " + std::to_string(run) + " task " + std::to_string(task) + ": " + Text(step);
      }
    }
  }
  return text;
}

Program DrawProgram(Random& random) {
  Program program;
  const bool forked = random.Below(4) == 0;
  const size_t tasks = forked ? 1 : 1 + random.Below(2);
  const uint32_t streams = forked || tasks == 2 ? 1 : 2;
  const size_t runs = tasks == 2 ? 1 + random.Below(2) : 1;
  if (streams == 2) program.streams = static_cast<StreamsOf>(random.Below(3));
  program.runs.assign(runs, Run(tasks));
  program.schedule = random.Below(2) == 0 ? 0 : random.Next();
  DrawGraph(random, program, forked);
  const bool patterns = random.Below(2) == 0;
  if (patterns) {
    for (uint32_t left = 1 + random.Below(2); left > 0; --left) {
      AppendPattern(random, program, streams);
    }
  }
  const size_t room = kMaxSteps - program.steps();
  const size_t steps = patterns ? std::min<size_t>(random.Below(2), room)
                                : 3 + random.Below(static_cast<uint32_t>(kMaxSteps) - 2);
  for (size_t i = 0; i < steps; ++i) InsertStep(random, program, streams);
  return program;
}

bool RemoveAnEdge(Program& program, Random& random) {
  std::vector<std::pair<Task*, size_t>> edges;
  for (Run& run : program.runs) {
    for (Task& task : run) {
      for (size_t i = 0; i < task.size(); ++i) {
        if (task[i].kind >= StepKind::kRecord) edges.emplace_back(&task, i);
      }
    }
  }
  if (edges.empty()) return false;
  const auto [task, at] = edges[random.Below(static_cast<uint32_t>(edges.size()))];
  task->erase(task->begin() + static_cast<std::ptrdiff_t>(at));
  return true;
}

}  // namespace h2d::testing
