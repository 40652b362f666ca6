#include "h2d/tests/exploration/small_world.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "h2d/device/fake/explore/explored_choices.h"
#include "h2d/device/fake/explore/watched_device.h"
#include "h2d/device/fake/explore/watched_tasks.h"
#include "h2d/device/fake/fake_device.h"
#include "h2d/device/faulty/faulty_device.h"
#include "h2d/tests/exploration/images.h"
#include "h2d/tests/support/region_model.h"

namespace h2d::testing {
namespace {

struct PlannedCopy {
  uint32_t stream = 0;
  uint32_t mirror = 0;
  uint32_t image = 0;
};

Bytes BytesOf(const Image& image) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(image.data());
  return Bytes(bytes, bytes + kImageBytes);
}

// Draws what all tasks do. A name that nothing has had yet is as good as any other such.
class Program {
 public:
  Program(Exploration& exploration, const WorldBounds& bounds)
      : exploration_(exploration), bounds_(bounds) {
    for (uint32_t i = 0; i < bounds.before; ++i) before_.push_back(DrawCopy());
    for (const uint32_t copies : bounds.copies) {
      auto& task = tasks_.emplace_back();
      for (uint32_t i = 0; i < copies; ++i) task.push_back(DrawCopy());
    }
  }

  const std::vector<PlannedCopy>& before() const noexcept { return before_; }

  const std::vector<std::vector<PlannedCopy>>& tasks() const noexcept { return tasks_; }
  uint64_t stands_for() const noexcept { return stands_for_; }

  std::string ToString() const {
    std::string text;
    for (const PlannedCopy& copy : before_) text += "before: " + ToString(copy);
    for (size_t task = 0; task < tasks_.size(); ++task) {
      for (const PlannedCopy& copy : tasks_[task]) {
        text += "task " + std::to_string(task) + ": " + ToString(copy);
      }
    }
    return text;
  }

 private:
  static std::string ToString(const PlannedCopy& copy) {
    return "image " + std::to_string(copy.image) + " through mirror " +
           std::to_string(copy.mirror) + " on stream " + std::to_string(copy.stream) + "\n";
  }
  uint32_t DrawName(uint32_t& used, uint32_t n) {
    if (!bounds_.one_of_symmetric) return exploration_.Decide(n);
    const uint32_t name = exploration_.Decide(std::min(used + 1, n));
    if (name == used) stands_for_ *= n - used++;
    return name;
  }
  PlannedCopy DrawCopy() {
    PlannedCopy copy;
    copy.stream = DrawName(streams_used_, bounds_.streams);
    copy.mirror = DrawName(mirrors_used_, bounds_.mirrors);
    if (bounds_.one_of_symmetric && bounds_.images == 2 && !written_[copy.mirror]) {
      stands_for_ *= 2;  // the two are each other's mirror image
    } else {
      copy.image = exploration_.Decide(bounds_.images);
    }
    written_[copy.mirror] = true;
    return copy;
  }

  Exploration& exploration_;
  const WorldBounds& bounds_;
  std::vector<PlannedCopy> before_;
  std::vector<std::vector<PlannedCopy>> tasks_;
  uint32_t streams_used_ = 0;
  uint32_t mirrors_used_ = 0;
  std::array<bool, 8> written_{};
  uint64_t stands_for_ = 1;
};

// One run.
class World {
 public:
  World(Exploration& exploration, const WorldBounds& bounds, bool keep_trace)
      : exploration_(exploration),
        bounds_(bounds),
        choices_(std::make_shared<ExploredChoices>(exploration, bounds.max_late)),
        fake_(FakeDevice::Create(OptionsFor(choices_, keep_trace))),
        program_(exploration, bounds) {}

  std::string Run(const StagerFactory& make_stager) {
    SetUp(make_stager);
    if (failure_.empty()) MakeCopies();
    if (failure_.empty()) Finish();
    if (!failure_.empty()) failure_ += "\n" + program_.ToString() + fake_->Timeline();
    return failure_;
  }
  uint64_t stands_for() const noexcept { return program_.stands_for(); }
  std::string Outcomes() const {
    std::string text;
    for (const std::string& task : outcomes_) text += task + ";";
    return text;
  }

 private:
  struct Target {
    Destination destination;
    RegionModel model{Bytes(kImageBytes, 0)};
    std::optional<PlannedCopy> last = {};  // the call that began last
    bool last_failed = false;
    std::shared_ptr<Bytes> read = std::make_shared<Bytes>();
  };

  static FakeOptions OptionsFor(std::shared_ptr<ChoiceSource> choices, bool keep_trace) {
    FakeOptions options = OptionsToExplore(std::move(choices));
    options.keep_trace = keep_trace;
    return options;
  }

  void Fail(const std::string& why) {
    if (failure_.empty()) failure_ = why;
  }
  template <class T>
  bool Need(const Expected<T>& done, const char* what) {
    if (!done) Fail(std::string(what) + ": " + done.error().ToString());
    return done.has_value();
  }

  void SetUp(const StagerFactory& make_stager) {
    std::shared_ptr<Device> device = fake_;
    if (bounds_.fault) {
      faulty_ = FaultyDevice::Create(fake_);
      for (const CallKind kind : kCallKinds) {
        faulty_->SetHook(kind, [this, kind](uint64_t call) { MayFail(kind, call); });
      }
      device = faulty_;
    }
    device = WatchedDevice::Create(device, exploration_, choices_);
    for (uint32_t i = 0; i < bounds_.streams; ++i) streams_.push_back(fake_->NewStream());
    const uint64_t block = PinnedBuffer::kAlignment;
    StagerOptions options{.slot_bytes = block,
                          .initial_slots = bounds_.fault ? 1 : bounds_.slots,
                          .max_slots = bounds_.slots,
                          .max_pinned_bytes = bounds_.slots * block};
    auto stager = make_stager(device, options, bounds_.mirrors);
    if (!Need(stager, "making the stager")) return;
    stager_ = std::move(*stager);
    for (uint32_t i = 0; i < bounds_.mirrors; ++i) {
      Target& target = targets_.emplace_back();
      target.destination = {fake_->AllocateDevice(kImageBytes).value(), kElements,
                            sizeof(uint32_t)};
      Need(stager_->NewMirror(i, target.destination), "making a mirror");
    }
    may_fail_ = true;
  }

  void MayFail(CallKind kind, uint64_t call) {
    if (!may_fail_) return;
    const uint32_t answer = exploration_.Decide(3);
    if (answer == 0) return;
    may_fail_ = false;
    failed_ = true;
    faulty_->Inject({.kind = kind,
                     .call = call,
                     .timing = answer == 1 ? FaultTiming::kBeforeCall : FaultTiming::kAfterCall});
  }

  void MakeCopies() {
    const auto& planned = program_.tasks();
    outcomes_.resize(planned.size());
    for (const PlannedCopy& copy : program_.before()) Copy(copy, outcomes_[0]);
    if (planned.size() == 1) {
      for (const PlannedCopy& copy : planned[0]) Copy(copy, outcomes_[0]);
      return;
    }
    std::vector<std::function<void()>> tasks;
    for (size_t task = 0; task < planned.size(); ++task) {
      tasks.push_back([this, &copies = planned[task], &outcomes = outcomes_[task]] {
        for (const PlannedCopy& copy : copies) Copy(copy, outcomes);
      });
    }
    Need(RunWatchedTasks(*fake_, exploration_, std::move(tasks)), "the tasks");
  }

  void Copy(const PlannedCopy& copy, std::string& outcomes) {
    Target& target = targets_[copy.mirror];
    target.last = copy;
    const size_t call = target.model.Begin();
    const auto outcome = stager_->CopyMirrored(copy.mirror, ViewOf(kImages[copy.image]),
                                               streams_[copy.stream], true);
    target.last_failed = !outcome;
    if (bounds_.keep_outcomes) outcomes += outcome ? ToString(outcome->kind)[0] : 'e';
    target.model.End(
        call, WriteEffect{.bytes = BytesOf(kImages[copy.image]), .maybe = !outcome.has_value()});
    if (!outcome && !failed_) Fail("a copy failed: " + outcome.error().ToString());
    if (outcome && outcome->kind == CopyOutcome::Kind::kWouldBlock) Fail("a copy did not wait");
  }

  // From here on the device is kind.
  void Finish() {
    choices_->Calm();
    may_fail_ = false;
    const bool at_once = bounds_.ends_in_flight && exploration_.Decide(2) == 1;
    if (failed_) EndQuarantine();
    for (uint32_t i = 0; i < bounds_.mirrors; ++i) Read(i);
    if (!at_once) {
      fake_->RunUntilIdle();
      CheckSlots();
    }
    // A stager without statistics promises nothing about what a failure costs it.
    const bool keeps_memory = !failed_ || stager_->stats().has_value();
    stager_.reset();
    fake_->RunUntilIdle();
    CheckContents();
    const FakeCounters counters = fake_->counters();
    if (keeps_memory && counters.pinned_bytes != counters.pinned_cached_bytes) {
      Fail(std::to_string(counters.pinned_bytes - counters.pinned_cached_bytes) +
           " B of pinned memory are lost (I9)");
    }
    for (const Hazard& hazard : fake_->hazards()) Fail(hazard.ToString());
  }

  // A slot whose record failed comes back with a later record of its stream.
  void EndQuarantine() {
    for (const Stream& stream : streams_) {
      const Destination spare = {fake_->AllocateDevice(kImageBytes).value(), kElements,
                                 sizeof(uint32_t)};
      Need(stager_->Copy(spare, ViewOf(kImages[0]), stream, true), "a good copy after an error");
      fake_->RunUntilIdle();
    }
  }

  // A reader ordered after the last call through a mirror. After an error that call is made again,
  // and of several tasks nobody knows which came last, so that another one is made.
  void Read(uint32_t mirror) {
    Target& target = targets_[mirror];
    if (!target.last) return;
    if (target.last_failed || program_.tasks().size() > 1) Copy(*target.last, outcomes_[0]);
    if (target.last_failed) {
      // A stager without statistics may have lost the order for good.
      if (stager_->stats()) Fail("after an error the next good call does not work (I5)");
      target.last.reset();
      return;
    }
    KernelSpec reader;
    reader.reads = {{target.destination.ptr, kImageBytes}};
    reader.run = [from = target.destination.ptr, into = target.read](const KernelMemory& memory) {
      for (const std::byte byte : memory.Read(from, kImageBytes)) {
        into->push_back(static_cast<uint8_t>(byte));
      }
    };
    Need(fake_->Launch(streams_[target.last->stream], std::move(reader)), "a reader");
  }

  void CheckContents() {
    for (Target& target : targets_) {
      if (!target.last || !failure_.empty()) continue;
      if (!target.model.Images().contains(*target.read)) {
        Fail("a reader saw " + HexBytes(*target.read) + ", which no full copies leave (I3, I4)");
      }
    }
  }

  void CheckSlots() {
    const std::optional<StagerStats> stats = stager_->stats();
    if (!stats) return;
    if (stats->slots_in_use_most > bounds_.slots ||
        stats->pinned_bytes_most > bounds_.slots * PinnedBuffer::kAlignment) {
      Fail("a limit was passed (I10)");
    }
    std::vector<std::unique_ptr<LeaseUnderTest>> leases;
    for (uint32_t i = 0; i <= bounds_.slots; ++i) {
      auto lease = stager_->Acquire(1, false);
      if (!Need(lease, "a slot at the end")) return;
      if ((*lease != nullptr) != (i < bounds_.slots)) {
        return Fail(std::to_string(i) + " slots can be had of " + std::to_string(bounds_.slots) +
                    " (I1)");
      }
      leases.push_back(std::move(*lease));
    }
  }

  Exploration& exploration_;
  const WorldBounds& bounds_;
  std::shared_ptr<ExploredChoices> choices_;
  std::shared_ptr<FakeDevice> fake_;
  std::shared_ptr<FaultyDevice> faulty_;
  Program program_;
  std::vector<Stream> streams_;
  std::vector<Target> targets_;
  std::unique_ptr<StagerUnderTest> stager_;
  bool may_fail_ = false;
  bool failed_ = false;
  std::vector<std::string> outcomes_;  // of each task's calls
  std::string failure_;
};

}  // namespace

std::string WorldBounds::ToString() const {
  std::string text;
  if (before != 0) text = std::to_string(before) + " copies, then ";
  for (const uint32_t& of_task : copies) {
    text += (&of_task == copies.data() ? "" : " + ") + std::to_string(of_task);
  }
  text += " copies, " + std::to_string(slots) + " slots, " + std::to_string(streams) +
          " streams, " + std::to_string(mirrors) + " mirrors, " + std::to_string(images) +
          " images";
  if (fault) text += ", every single fault";
  if (ends_in_flight) text += ", ending in flight";
  if (!one_of_symmetric) text += ", without symmetry";
  return text;
}

void PrintTo(const WorldBounds& bounds, std::ostream* out) { *out << bounds.ToString(); }

WorldReport ExploreWorld(const WorldBounds& bounds, const StagerFactory& make_stager, bool reduce) {
  WorldReport report{.exploration = Exploration({.reduce = reduce, .max_runs = bounds.max_runs})};
  Exploration& exploration = report.exploration;
  do {
    World world(exploration, bounds, false);
    std::string failure = world.Run(make_stager);
    if (exploration.redundant()) continue;
    report.stands_for += world.stands_for();
    if (bounds.keep_outcomes) report.outcomes[world.Outcomes()] += world.stands_for();
    if (failure.empty()) continue;
    exploration.Repeat();
    report.failure = World(exploration, bounds, true).Run(make_stager);
    return report;
  } while (exploration.EndRun());
  return report;
}

}  // namespace h2d::testing
