#include "h2d/device/fake/testing/interleaving_judge.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace h2d::testing {
namespace {

size_t NodesOfStep(const Program& program, const Step& step) {
  switch (step.kind) {
    case StepKind::kGraph:
      return 3 + 2 * program.graph.size();
    case StepKind::kCopy:
    case StepKind::kReadBack:
    case StepKind::kHostFunction:
    case StepKind::kWaitAny:
      return 3;
    case StepKind::kKernel:
    case StepKind::kRecord:
    case StepKind::kWait:
    case StepKind::kSynchronize:
    case StepKind::kQuery:
      return 2;
    default:
      return 1;
  }
}

}  // namespace

std::string MemoryName(uint32_t memory) {
  return memory < kObjects ? "slot " + std::to_string(memory)
                           : "target " + std::to_string(memory - kObjects);
}

std::string StreamName(StreamsOf streams, uint32_t stream) {
  const bool legacy = stream == 1 && streams != StreamsOf::kOrdinary;
  return legacy ? "legacy stream" : "stream " + std::to_string(stream);
}

size_t InterleavingJudge::NodesOf(const Program& program) {
  size_t nodes = program.runs.size();
  for (const Run& run : program.runs) {
    for (const Task& task : run) {
      for (const Step& step : task) nodes += NodesOfStep(program, step);
    }
  }
  return nodes;
}

InterleavingJudge::InterleavingJudge(const Program& program, const std::vector<Happened>& happened)
    : program_(program) {
  stores_.push_back(kNone);
  for (const Happened& what : happened) Add(what);
  FindConflicts();
  while (WalkAgain()) {
  }
}

bool InterleavingJudge::FoundSomething() const noexcept {
  const auto found = [](bool it) { return it; };
  return std::ranges::any_of(racy_, found) || std::ranges::any_of(unordered_, found);
}

std::string InterleavingJudge::LaneName(Lane lane) const {
  if (lane == kBranch) return "graph " + std::to_string(program_.nested ? 2 : 1) + " branch 1";
  if (lane >= kFirstStream) return StreamName(program_.streams, lane - kFirstStream);
  return program_.tasks() == 1 ? "host" : "task " + std::to_string(lane);
}

// --- What happened -----------------------------------------------------------------------------

int InterleavingJudge::AddNode(Lane lane, uint64_t needs) {
  Node& node = nodes_.emplace_back();
  node.needs = needs;
  node.lane = lane;
  return static_cast<int>(nodes_.size()) - 1;
}

// The host's next call.
int InterleavingJudge::Call(uint32_t task, uint64_t needs) {
  return last_call_[task] = AddNode(task, needs | Bit(last_call_[task]));
}

// Work of a stream, in the stream's order; legacy and blocking streams wait for each other's.
int InterleavingJudge::Work(uint32_t stream, int call) {
  uint64_t needs = Bit(call) | Bit(last_work_[stream]);
  if (program_.streams == StreamsOf::kBlockingAndLegacy) needs |= Bit(last_work_[1 - stream]);
  return last_work_[stream] = AddNode(kFirstStream + stream, needs);
}

void InterleavingJudge::Add(const Happened& what) {
  if (what.step == nullptr) return EndRun();
  const int call = Call(what.task);
  if (what.step->kind < StepKind::kRecord) {
    AddAccess(what, call);
  } else {
    AddSynchronisation(what, call);
  }
}

void InterleavingJudge::EndRun() {
  const int end = AddNode(0, Bit(last_call_[0]) | Bit(last_call_[1]));
  last_call_ = {end, end};
}

void InterleavingJudge::AddAccess(const Happened& what, int call) {
  const Step& s = *what.step;
  const uint32_t target = kObjects + s.target;
  switch (s.kind) {
    case StepKind::kFill:
    case StepKind::kHostRead:
      At(call).accesses = {{s.slot, s.begin, s.end, s.kind == StepKind::kFill}};
      break;
    case StepKind::kCopy:
      AddCopy(s, kFirstStream + s.stream, call, kNone);
      break;
    case StepKind::kKernel:
      At(Work(s.stream, call)).accesses = {{target, s.begin, s.end, s.writes}};
      break;
    case StepKind::kHostFunction:
      AddFunction(what, call);
      break;
    case StepKind::kGraph:
      AddGraph(s, call);
      break;
    case StepKind::kReadBack:
      AddReadBack(s, what.task, call);
      break;
    default:
      break;
  }
}

void InterleavingJudge::AddFunction(const Happened& what, int call) {
  const Step& s = *what.step;
  if (s.stores == FunctionStores::kBeforeItsAccess) AddStore(what.answer, Work(s.stream, call));
  const int work = Work(s.stream, call);
  At(work).accesses = {{s.slot, s.begin, s.end, s.writes, true}};
  if (s.stores == FunctionStores::kAfterIt) AddStore(what.answer, Work(s.stream, call));
}

void InterleavingJudge::AddStore(uint32_t number, int node) {
  stores_.resize(std::max<size_t>(stores_.size(), number + 1), kNone);
  stores_[number] = node;
}

// The source is read at any time from the call to the copy's end; only what a host function writes
// is read in stream order. `work` is the copy's turn; without it, it is the stream's next work.
void InterleavingJudge::AddCopy(const Step& s, Lane lane, int call, int work) {
  const int early = AddNode(lane, Bit(call));
  At(early).accesses = {
      {.memory = s.slot, .begin = s.begin, .end = s.end, .writes = false, .early = true}};
  if (work == kNone) work = Work(s.stream, early);
  At(work).needs |= Bit(early);
  At(work).accesses = {{s.slot, s.begin, s.end, false},
                       {kObjects + s.target, s.begin, s.end, true}};
}

void InterleavingJudge::AddGraph(const Step& s, int call) {
  const int root = Work(s.stream, call);
  At(root).needs |= Bit(last_launch_);
  uint64_t all = 0;
  for (size_t i = 0; i < program_.graph.size(); ++i) {
    const Step& step = program_.graph[i];
    const Lane lane = i == 0 ? kFirstStream + s.stream : kBranch;
    const int node = AddNode(lane, Bit(root));
    if (step.kind == StepKind::kCopy) {
      AddCopy(step, lane, call, node);
    } else {
      At(node).accesses = {{kObjects + step.target, step.begin, step.end, step.writes}};
    }
    all |= Bit(node);
  }
  last_launch_ = last_work_[s.stream] = AddNode(kFirstStream + s.stream, all);
}

// The host writes what it read when it has it.
void InterleavingJudge::AddReadBack(const Step& s, uint32_t task, int call) {
  const int work = Work(s.stream, call);
  At(work).accesses = {{kObjects + s.target, s.begin, s.end, false}};
  At(Call(task, Bit(work))).accesses = {{s.slot, s.begin, s.end, true}};
}

void InterleavingJudge::AddSynchronisation(const Happened& what, int call) {
  const Step& s = *what.step;
  switch (s.kind) {
    case StepKind::kRecord:
      At(call).event = s.event;
      At(call).uses = std::exchange(uses_[s.event], 0);
      record_call_[s.event] = call;
      record_[s.event] = Work(s.stream, call);
      break;
    case StepKind::kWait:
      Use(call, s.event);
      if (record_[s.event] != kNone) WaitForRecord(Work(s.stream, call), call, s.event);
      break;
    case StepKind::kSynchronize:
    case StepKind::kQuery:
      Use(call, s.event);
      if (s.kind == StepKind::kSynchronize || what.answer == 1) {
        WaitForRecord(Call(what.task), call, s.event);
      }
      break;
    case StepKind::kWaitAny:
      AddWaitAny(what, call);
      break;
    case StepKind::kSynchronizeStream:
    case StepKind::kQueryStream:
      if (s.kind == StepKind::kSynchronizeStream || what.answer == 1) {
        At(call).needs |= Bit(last_work_[s.stream]);
      }
      break;
    case StepKind::kSynchronizeDevice:
      At(call).needs |= Bit(last_work_[0]) | Bit(last_work_[1]);
      break;
    case StepKind::kStore:
      AddStore(what.answer, call);
      break;
    case StepKind::kLoad:
      At(call).needs |= Bit(stores_[what.answer]);
      break;
    default:
      break;
  }
}

// It looks at one after the other until one is complete because it was never recorded.
void InterleavingJudge::AddWaitAny(const Happened& what, int call) {
  Use(call, 0);
  int user = call;
  if (record_[0] != kNone) {
    const int second = Call(what.task);
    Use(second, 1);
    if (what.answer == 1) user = second;
  }
  WaitForRecord(Call(what.task), user, what.answer);
}

void InterleavingJudge::Use(int call, uint32_t event) {
  At(call).record_call = record_call_[event];
  At(call).event = event;
  uses_[event] |= Bit(call);
}

void InterleavingJudge::WaitForRecord(int node, int user, uint32_t event) {
  At(node).record = record_[event];
  At(node).user = user;
}

// --- What may happen ---------------------------------------------------------------------------

bool InterleavingJudge::Conflict(const Access& a, const Access& b) noexcept {
  if ((a.early && b.by_function) || (b.early && a.by_function)) return false;
  return a.memory == b.memory && (a.writes || b.writes) && a.begin < b.end && b.begin < a.end;
}

void InterleavingJudge::FindConflicts() {
  for (Node& node : nodes_) {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (&nodes_[i] == &node) continue;
      for (const Access& one : node.accesses) {
        for (const Access& other : nodes_[i].accesses) {
          if (Conflict(one, other)) node.conflicts |= uint64_t{1} << i;
        }
      }
    }
  }
}

uint64_t InterleavingJudge::Needs(const Node& node) const {
  const bool waits = node.record != kNone && !nodes_[static_cast<size_t>(node.user)].early;
  return node.needs | (waits ? Bit(node.record) : 0);
}

bool InterleavingJudge::WalkAgain() {
  races_.clear();
  racy_ = {};
  more_early_ = false;
  std::vector<uint64_t> needs;
  for (Node& node : nodes_) {
    node.raced = 0;
    needs.push_back(Needs(node));
  }
  std::unordered_set<uint64_t> seen = {0};
  std::vector<uint64_t> left = {0};
  while (!left.empty()) {
    const uint64_t state = left.back();
    left.pop_back();
    const uint64_t next = Next(state, needs);
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const uint64_t bit = uint64_t{1} << i;
      if ((next & bit) == 0) continue;
      LookAt(nodes_[i], state, next);
      if (seen.insert(state | bit).second) left.push_back(state | bit);
    }
  }
  return more_early_;
}

// What may happen next when `state` has happened.
uint64_t InterleavingJudge::Next(uint64_t state, const std::vector<uint64_t>& needs) const {
  uint64_t next = 0;
  for (size_t i = 0; i < needs.size(); ++i) {
    const uint64_t bit = uint64_t{1} << i;
    if ((state & bit) == 0 && (needs[i] & ~state) == 0) next |= bit;
  }
  return next;
}

void InterleavingJudge::LookAt(Node& node, uint64_t state, uint64_t next) {
  if ((Bit(node.record_call) & ~state) != 0) {
    more_early_ = more_early_ || !node.early;
    node.early = unordered_[node.event] = true;
  }
  if ((node.uses & ~state) != 0) unordered_[node.event] = true;
  if ((node.conflicts & next & ~node.raced) != 0) FoundRaces(node, next);
}

void InterleavingJudge::FoundRaces(Node& node, uint64_t next) {
  const uint64_t found = node.conflicts & next & ~node.raced;
  node.raced |= found;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if ((found & uint64_t{1} << i) == 0) continue;
    for (const Access& one : node.accesses) {
      for (const Access& other : nodes_[i].accesses) {
        if (!Conflict(one, other)) continue;
        racy_[one.memory] = true;
        races_.push_back({one.memory, std::max(one.begin, other.begin),
                          std::min(one.end, other.end), LaneName(node.lane),
                          LaneName(nodes_[i].lane)});
      }
    }
  }
}

}  // namespace h2d::testing
