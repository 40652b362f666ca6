// The tree of all runs of a small program, walked depth first.
//
// A run asks what happens next: `Decide` for a free decision (the answer of a query, what the
// program does), `PickTask` for which host task goes on. `EndRun` moves on to the next run that has
// not been made: the first decisions are answered as before, one of them otherwise, and those after
// it anew. When none is left every run has been made.
//
// EQUIVALENT SCHEDULES are made once. Two steps of different tasks that touch nothing in common
// commute, and of the schedules that differ in the order of such steps one stands for all. The tree
// is reduced by source sets and sleep sets (P. Abdulla, S. Aronis, B. Jonsson, K. Sagonas, "Optimal
// dynamic partial order reduction", POPL 2014): after a run, each pair of steps that conflict and
// that nothing orders is a race, and the other order of it is put on the list; a task whose step
// was explored sleeps until something conflicts with that step. What steps touch is told by
// `watched_device.h` and `watched_tasks.h`; a step that tells nothing conflicts with every other.
// `reduce = false` makes every schedule: the check of the reduction at small sizes.
#ifndef H2D_DEVICE_FAKE_EXPLORE_EXPLORATION_H_
#define H2D_DEVICE_FAKE_EXPLORE_EXPLORATION_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "h2d/device/fake/explore/footprint.h"

namespace h2d {

struct ExplorationOptions {
  bool reduce = true;
  uint64_t max_runs = ~uint64_t{0};
};

// One thread, or host tasks of one run, use an exploration at a time. Memory: a node for each
// decision of the present run.
class Exploration {
 public:
  static constexpr uint32_t kMaxTasks = 32;
  static constexpr uint32_t kNoTask = ~uint32_t{0};

  explicit Exploration(ExplorationOptions options = {}) : options_(options) {}

  // --- During a run

  // What happens of `n` possibilities, in [0, n); 0, the first tried, when `n` is below 2.
  uint32_t Decide(uint32_t n);
  // Which of `tasks`, by index, makes the next step. The first is tried first.
  uint32_t PickTask(std::span<const uint32_t> tasks);

  // Tasks 0 to `count` - 1 begin, after all that was before; and have ended.
  void BeginTasks(uint32_t count);
  void EndTasks();
  // Task `task` says that it runs: a schedule that did not follow `PickTask` proves nothing.
  void Runs(uint32_t task) noexcept;
  // The task that makes a step now; `kNoTask` outside tasks.
  uint32_t running() const noexcept { return running_; }
  // The next step of the running task will touch this. Without a word it conflicts with all others.
  void Announce(Footprint footprint);
  // The step that runs now touches this, too.
  void Add(uint64_t object, Touch touch);
  // A number for an object known by its address, equal in all runs that began alike.
  uint64_t NameOf(const void* address);

  // --- Between runs

  // Answers whether there is another run to make.
  bool EndRun();
  // The run that was made last is to be made once more, to look at it.
  void Repeat();

  // --- What was seen

  uint64_t runs() const noexcept { return runs_; }
  // Runs that turned out to be equivalent to earlier ones, and prove nothing.
  uint64_t redundant_runs() const noexcept { return redundant_runs_; }
  uint64_t states() const noexcept { return states_; }  // in which something was decided
  // Every run was made.
  bool complete() const noexcept { return finished_ && !diverged_; }
  // The run is not a function of its decisions: it asked other questions than before.
  bool diverged() const noexcept { return diverged_; }
  // The present run is known to be equivalent to an earlier one.
  bool redundant() const noexcept { return redundant_; }
  // "1234 runs (and 56 redundant ones) through 7890 states: complete"
  std::string ToString() const;

 private:
  using TaskSet = uint32_t;  // a bit each
  struct Node {
    uint32_t answer = 0;
    uint32_t n = 0;  // of a free decision; 0: this is a pick
    // Of a pick:
    std::vector<uint32_t> tasks;      // in the order offered
    TaskSet wanted = 0;               // to be tried
    TaskSet asleep = 0;               // explored here or, as the same step, before
    std::vector<Footprint> explored;  // by task, for those asleep and the one that runs
  };
  using Clock = std::vector<uint32_t>;  // by task
  // What happened since a pick and before the next.
  struct Step {
    uint32_t task = 0;
    size_t node = 0;     // its pick
    uint32_t count = 0;  // of the task's steps, this one included
    Footprint touched;
    Clock before;  // so many steps of each task happen before this one or are it
  };

  bool NewPick(std::span<const uint32_t> tasks);
  void BeginStep(uint32_t task);
  void EndStep();
  void FindRaces(size_t index);
  void WantReversed(size_t earlier, size_t later, Clock before_later);
  TaskSet FirstsWithout(size_t earlier, size_t later, Clock before_later) const;
  const Clock& ClockOfTaskBefore(size_t index) const;
  void Rewind();
  bool NextBranch(Node& node);
  void KeepStepsBefore(size_t node);

  const ExplorationOptions options_;
  std::vector<Node> path_;
  size_t depth_ = 0;
  std::vector<Step> steps_;
  size_t kept_steps_ = 0;  // of the run before, which this one begins with
  size_t step_ = 0;        // that runs now, counted from 1
  size_t first_step_ = 0;  // of the tasks that run now
  uint32_t running_ = kNoTask;
  Clock nothing_;                     // the clock of a task that has made no step
  std::vector<Footprint> announced_;  // by task
  std::unordered_map<const void*, uint64_t> names_;
  bool redundant_ = false;
  bool diverged_ = false;
  bool finished_ = false;
  uint64_t runs_ = 0;
  uint64_t redundant_runs_ = 0;
  uint64_t states_ = 0;
};

}  // namespace h2d

#endif  // H2D_DEVICE_FAKE_EXPLORE_EXPLORATION_H_
