#include "h2d/device/fake/explore/exploration.h"

#include <algorithm>
#include <utility>

namespace h2d {
namespace {

constexpr uint32_t Bit(uint32_t task) noexcept { return uint32_t{1} << task; }

void Join(std::vector<uint32_t>& clock, const std::vector<uint32_t>& other) {
  for (size_t i = 0; i < clock.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}

}  // namespace

// --- During a run ------------------------------------------------------------------------------

uint32_t Exploration::Decide(uint32_t n) {
  if (n < 2 || redundant_ || diverged_) return 0;
  if (depth_ == path_.size()) {
    Node& node = path_.emplace_back();
    node.n = n;
    ++states_;
  } else if (path_[depth_].n != n) {
    diverged_ = true;
    return 0;
  }
  return path_[depth_++].answer;
}

uint32_t Exploration::PickTask(std::span<const uint32_t> tasks) {
  EndStep();
  if (redundant_ || diverged_) return 0;
  if (depth_ == path_.size() && !NewPick(tasks)) {
    redundant_ = true;
    return 0;
  }
  const Node& node = path_[depth_];
  if (node.n != 0 || !std::ranges::equal(node.tasks, tasks)) {
    diverged_ = true;
    return 0;
  }
  BeginStep(node.answer);
  ++depth_;
  return static_cast<uint32_t>(std::ranges::find(tasks, node.answer) - tasks.begin());
}

// Answers whether a task is left whose step is worth making: not when all of them sleep.
bool Exploration::NewPick(std::span<const uint32_t> tasks) {
  Node node;
  node.tasks.assign(tasks.begin(), tasks.end());
  node.explored.resize(announced_.size());
  if (options_.reduce && step_ > first_step_) {
    const Step& last = steps_[step_ - 1];
    const Node& parent = path_[last.node];
    for (uint32_t task = 0; task < announced_.size(); ++task) {
      if ((parent.asleep & Bit(task)) == 0) continue;
      if (parent.explored[task].Conflicts(last.touched)) continue;
      node.asleep |= Bit(task);
      node.explored[task] = parent.explored[task];
    }
  }
  for (const uint32_t task : tasks) node.wanted |= Bit(task);
  const auto awake =
      std::ranges::find_if(tasks, [&](uint32_t task) { return (node.asleep & Bit(task)) == 0; });
  if (awake == tasks.end()) return false;
  node.answer = *awake;
  if (options_.reduce) node.wanted = Bit(node.answer);
  path_.push_back(std::move(node));
  ++states_;
  return true;
}

void Exploration::BeginStep(uint32_t task) {
  if (step_++ >= kept_steps_) {
    Step& step = steps_.emplace_back();
    step.task = task;
    step.node = depth_;
    step.touched = std::move(announced_[task]);
  }
  running_ = task;
  announced_[task] = Footprint();
  announced_[task].AddEverything();
}

void Exploration::EndStep() {
  if (redundant_ || running_ == kNoTask) return;
  running_ = kNoTask;
  if (step_ <= kept_steps_) return;
  const Step& step = steps_[step_ - 1];
  path_[step.node].explored[step.task].Join(step.touched);
  if (options_.reduce) FindRaces(step_ - 1);
}

void Exploration::BeginTasks(uint32_t count) {
  diverged_ = diverged_ || count > kMaxTasks;
  first_step_ = step_;
  nothing_.assign(count, 0);
  announced_.assign(count, Footprint());
}

void Exploration::EndTasks() { EndStep(); }

void Exploration::Runs(uint32_t task) noexcept {
  diverged_ = diverged_ || (running_ != kNoTask && running_ != task);
}

void Exploration::Announce(Footprint footprint) {
  if (running_ != kNoTask) announced_[running_] = std::move(footprint);
}

void Exploration::Add(uint64_t object, Touch touch) {
  if (running_ != kNoTask && step_ > kept_steps_) steps_[step_ - 1].touched.Add(object, touch);
}

uint64_t Exploration::NameOf(const void* address) {
  return names_.emplace(address, names_.size()).first->second;
}

// --- Races -------------------------------------------------------------------------------------

const Exploration::Clock& Exploration::ClockOfTaskBefore(size_t index) const {
  for (size_t i = index; i-- > first_step_;) {
    if (steps_[i].task == steps_[index].task) return steps_[i].before;
  }
  return nothing_;
}

// A step before this one that conflicts with it is in a race with it, unless it happens before an
// earlier step of the same task or before another step that is in a race with it.
void Exploration::FindRaces(size_t index) {
  Step& step = steps_[index];
  const Clock own = ClockOfTaskBefore(index);
  step.count = own[step.task] + 1;
  Clock raced = own;   // with what is in a race already
  Clock before = own;  // with everything that it depends on
  for (size_t i = index; i-- > first_step_;) {
    const Step& earlier = steps_[i];
    if (earlier.task == step.task || own[earlier.task] >= earlier.count) continue;
    const Footprint::Relation relation = earlier.touched.To(step.touched);
    if (relation == Footprint::Relation::kNone) continue;
    Join(before, earlier.before);
    if (relation == Footprint::Relation::kOrdered) continue;
    if (raced[earlier.task] >= earlier.count) continue;
    WantReversed(i, index, own);
    Join(raced, earlier.before);
  }
  before[step.task] = step.count;
  step.before = std::move(before);
}

// Sees to it that some run makes `later` before `earlier`.
void Exploration::WantReversed(size_t earlier, size_t later, Clock before_later) {
  Node& node = path_[steps_[earlier].node];
  const TaskSet firsts = FirstsWithout(earlier, later, std::move(before_later));
  if ((firsts & node.wanted) != 0) return;  // a run that begins with it does
  TaskSet offered = 0;
  for (const uint32_t task : node.tasks) offered |= Bit(task);
  const TaskSet best = firsts & Bit(steps_[later].task);
  const TaskSet one = best != 0 ? best : firsts & (~firsts + 1);
  node.wanted |= (one & offered) != 0 ? one : offered;
}

// Of the steps after `earlier` that do not happen after it, and `later`: the tasks of those that
// nothing among them comes before.
Exploration::TaskSet Exploration::FirstsWithout(size_t earlier, size_t later,
                                                Clock before_later) const {
  const Step& without = steps_[earlier];
  std::vector<const Step*> others;
  TaskSet seen = 0;
  TaskSet firsts = 0;
  const auto add = [&](const Step& step, const Clock& before) {
    const bool is_first =
        (seen & Bit(step.task)) == 0 && std::ranges::none_of(others, [&](const Step* other) {
          return before[other->task] >= other->count;
        });
    if (is_first) firsts |= Bit(step.task);
    seen |= Bit(step.task);
  };
  for (size_t i = earlier + 1; i < later; ++i) {
    const Step& step = steps_[i];
    if (step.before[without.task] >= without.count) continue;
    add(step, step.before);
    others.push_back(&step);
    if (step.touched.Conflicts(steps_[later].touched)) Join(before_later, step.before);
  }
  add(steps_[later], before_later);
  return firsts;
}

// --- Between runs ------------------------------------------------------------------------------

bool Exploration::NextBranch(Node& node) {
  if (node.n != 0) return ++node.answer < node.n;
  node.asleep |= Bit(node.answer);
  for (const uint32_t task : node.tasks) {
    if ((node.wanted & ~node.asleep & Bit(task)) == 0) continue;
    node.answer = task;
    return true;
  }
  return false;
}

// The steps that the next run repeats: those that ended before the node that is answered anew.
void Exploration::KeepStepsBefore(size_t node) {
  size_t kept = 0;
  while (kept < steps_.size() && steps_[kept].node < node) ++kept;
  const bool inside = path_[node].n != 0 && kept > 0;
  kept_steps_ = inside ? kept - 1 : kept;
  steps_.resize(kept_steps_);
}

bool Exploration::EndRun() {
  EndStep();
  ++(redundant_ ? redundant_runs_ : runs_);
  diverged_ = diverged_ || depth_ != path_.size();
  if (diverged_) return false;
  while (!path_.empty() && !NextBranch(path_.back())) path_.pop_back();
  finished_ = path_.empty();
  if (finished_ || runs_ + redundant_runs_ >= options_.max_runs) return false;
  KeepStepsBefore(path_.size() - 1);
  Rewind();
  return true;
}

void Exploration::Repeat() {
  EndStep();
  kept_steps_ = steps_.size();
  Rewind();
}

void Exploration::Rewind() {
  depth_ = step_ = first_step_ = 0;
  running_ = kNoTask;
  redundant_ = false;
  announced_.clear();
  names_.clear();
}

std::string Exploration::ToString() const {
  std::string text = std::to_string(runs_) + " runs";
  if (redundant_runs_ != 0) text += " (and " + std::to_string(redundant_runs_) + " redundant ones)";
  text += " through " + std::to_string(states_) + " states: ";
  if (diverged_) return text + "not complete: a run is not a function of its decisions";
  if (finished_) return text + "complete";
  return text + "not complete: the bound of " + std::to_string(options_.max_runs) + " runs";
}

}  // namespace h2d
