// How a run begins, and how its tasks take their operations.
#include <algorithm>
#include <array>
#include <utility>

#include "h2d/tests/support/plan_run.h"

namespace h2d::testing {

RunResult RunPlan(const Plan& plan, PlanHarness& harness, const StagerFactory& make_stager) {
  return PlanRun(plan, harness, make_stager).Run();
}

RunResult PlanRun::Run() {
  if (SetUp()) {
    std::vector<std::function<void()>> tasks;
    for (size_t task = 0; task < plan_.header.task_count(); ++task) {
      tasks.push_back([this, task] { RunTask(task); });
    }
    Required(harness_.RunTasks(std::move(tasks)), "running the tasks");
    CheckEnd();
  }
  TearDown();
  if (const std::string hazards = harness_.Hazards(); !hazards.empty()) Fail(hazards);
  if (!result_.ok()) result_.timeline = harness_.Timeline();
  result_.trace_hash = harness_.TraceHash();
  return std::move(result_);
}

void PlanRun::Fail(std::string why) {
  if (result_.failure.empty()) result_.failure = std::move(why);
}

bool PlanRun::Required(const Expected<void>& done, const char* what) {
  if (!done)
    Fail(std::string("the plan's own callers failed at ") + what + ": " + done.error().ToString());
  return done.has_value();
}

bool PlanRun::MakeTarget(uint32_t element_bytes, uint64_t count, size_t buffers) {
  Target& target =
      targets_.emplace_back("target " + std::to_string(targets_.size()), element_bytes, count);
  for (size_t i = 0; i < buffers; ++i) {
    Bytes initial(target.bytes() + 2 * kGuardBytes, static_cast<uint8_t>(0xa0 + targets_.size()));
    const std::string name = target.name + (i == 0 ? "" : ", other buffer");
    Expected<DevicePtr> memory = harness_.Allocate(initial, name);
    if (!memory) {
      Fail("no device memory for a plan: " + memory.error().ToString());
      return false;
    }
    target.buffers.emplace_back(*memory, std::move(initial));
  }
  return true;
}

bool PlanRun::SetUp() {
  options_ = plan_.header.stager_options();
  steady_ = options_.initial_slots * std::max<uint64_t>(options_.slot_bytes, 256) ==
            options_.max_pinned_bytes;
  mirrors_ = plan_.header.mirror_count();
  leases_.resize(plan_.header.task_count());
  for (uint32_t i = 0; i < plan_.header.stream_count(); ++i) {
    Expected<Stream> stream = harness_.NewStream("s" + std::to_string(i));
    if (!stream) {
      Fail("no stream for a plan: " + stream.error().ToString());
      return false;
    }
    streams_.slots().push_back({.stream = *stream});
  }
  // Elements of every size; the last plain destination is larger than most slots.
  constexpr std::array<std::pair<uint32_t, uint64_t>, 4> kMirrored = {
      {{4, 12}, {1, 40}, {8, 6}, {12, 5}}};
  for (size_t i = 0; i < mirrors_; ++i) {
    if (!MakeTarget(kMirrored[i].first, kMirrored[i].second, 2)) return false;
    targets_.back().mirror = i;
  }
  if (!MakeTarget(2, 10, 1) || !MakeTarget(4, 160, 1)) return false;

  Expected<std::unique_ptr<StagerUnderTest>> stager =
      make_stager_(std::make_shared<CountingDevice>(harness_.device()), options_, mirrors_);
  if (!stager) {
    Fail("no stager for a plan: " + stager.error().ToString());
    return false;
  }
  stager_ = std::move(*stager);
  for (size_t i = 0; i < mirrors_; ++i) {
    if (!Required(stager_->NewMirror(i, targets_[i].destination(0)), "making a mirror")) {
      return false;
    }
  }
  return MakeSlabs();
}

// Plans without operations of steps are run as if there were none.
bool PlanRun::MakeSlabs() {
  const auto is_of_steps = [](const PlanOp& op) { return op.kind >= kFirstStepOp; };
  if (!stager_->has_steps() || std::none_of(plan_.ops.begin(), plan_.ops.end(), is_of_steps)) {
    return true;
  }
  legacy_.stream = harness_.LegacyStream();
  Expected<StepFields> fields = StepFields::Make();
  if (!fields) {
    Fail("no layout for a plan: " + fields.error().ToString());
    return false;
  }
  fields_.emplace(*std::move(fields));
  for (const char* name : {"slab", "other slab"}) {
    // The bytes between fields belong to the slab and are 0.
    Bytes initial(fields_->layout.slab_bytes() + 2 * Slab::kGuardBytes, 0);
    for (const StepLayout::FieldInfo& field : fields_->layout.fields()) {
      const auto begin =
          initial.begin() + static_cast<std::ptrdiff_t>(Slab::kGuardBytes + field.offset);
      std::fill_n(begin, field.bytes(), uint8_t{0xb0});
    }
    Expected<DevicePtr> memory = harness_.Allocate(initial, name);
    if (!memory) {
      Fail("no device memory for a plan: " + memory.error().ToString());
      return false;
    }
    if (!MakeWriter(slabs_.emplace_back(*memory, initial))) return false;
  }
  return true;
}

void PlanRun::RunTask(size_t task) {
  for (size_t i = 0; i < plan_.ops.size() && result_.ok(); ++i) {
    const PlanOp& op = plan_.ops[i];
    if (op.task % plan_.header.task_count() != task) continue;
    harness_.BeginOperation(i);
    Execute(op, task);
  }
  EndCaptures(task);
}

void PlanRun::Execute(const PlanOp& op, size_t task) {
  switch (op.kind) {
    case OpKind::kCopy:
      return Copy(op);
    case OpKind::kMirroredCopy:
      return MirroredCopy(op);
    case OpKind::kRead:
      return Read(op);
    case OpKind::kAcquire:
      return Acquire(op, task);
    case OpKind::kSubmit:
      return Submit(op, task);
    case OpKind::kDrop:
      return Drop(op, task);
    case OpKind::kInvalidate:
      return Invalidate(op);
    case OpKind::kMatches:
      return Matches(op);
    case OpKind::kForeignWrite:
      return ForeignWrite(op);
    case OpKind::kRecord:
      return Record(op);
    case OpKind::kRebind:
      return Rebind(op);
    case OpKind::kRemakeMirror:
      return RemakeMirror(op);
    case OpKind::kHold:
      return Hold(op);
    case OpKind::kRelease:
      return Release(op);
    case OpKind::kCompleteNext:
      return CompleteNext(op);
    case OpKind::kAdvance:
      Count(op);
      return harness_.Advance(std::chrono::microseconds(op.length));
    case OpKind::kBeginCapture:
      return BeginCapture(op, task);
    case OpKind::kEndCapture:
      return EndCaptures(task);
    case OpKind::kRemakeStream:
      return RemakeStream(op);
    case OpKind::kFault:
      return Fault(op);
    case OpKind::kBadCall:
      return BadCall(op);
    default:
      return ExecuteStep(op);
  }
}

void PlanRun::ExecuteStep(const PlanOp& op) {
  switch (op.kind) {
    case OpKind::kSetField:
      return SetField(op);
    case OpKind::kEditRows:
      return EditRows(op);
    case OpKind::kSubmitStep:
      return SubmitStep(op);
    case OpKind::kForgetField:
      return ForgetField(op);
    case OpKind::kReadSlab:
      return ReadStep(op);
    case OpKind::kGraphWrite:
      return GraphWrite(op);
    case OpKind::kPlainToSlab:
      return PlainToSlab(op);
    case OpKind::kRemakeStep:
      return RemakeStep(op);
    case OpKind::kBatch:
      return Batch(op);
    default:
      return BadStepCall(op);
  }
}

AccessMark PlanRun::MarkAfterCall(const StreamUse& use) {
  Device& device = harness_.callers_device();
  Expected<Event> event = device.CreateEvent();
  AccessMark mark{.stream = &use.slot(), .generation = use.slot().generation};
  if (!event) {
    Fail("no event for a plan: " + event.error().ToString());
    return mark;
  }
  mark.event = std::make_shared<Event>(std::move(*event));
  Required(device.Record(*mark.event, use.stream()), "recording an event");
  return mark;
}

}  // namespace h2d::testing
