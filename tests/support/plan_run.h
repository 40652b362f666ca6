// One run of one plan: the state that its operations share. See run_plan.h.
#ifndef H2D_TESTS_SUPPORT_PLAN_RUN_H_
#define H2D_TESTS_SUPPORT_PLAN_RUN_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "h2d/device/sync.h"
#include "h2d/tests/support/buffer.h"
#include "h2d/tests/support/byte_model.h"
#include "h2d/tests/support/counting_device.h"
#include "h2d/tests/support/mirror_knowledge.h"
#include "h2d/tests/support/plan.h"
#include "h2d/tests/support/plan_harness.h"
#include "h2d/tests/support/run_plan.h"
#include "h2d/tests/support/slab.h"
#include "h2d/tests/support/stager_under_test.h"
#include "h2d/tests/support/stream_table.h"
#include "h2d/tests/support/values.h"

namespace h2d::testing {

// A destination of copies: a plain one has one buffer, a mirrored one two, to be rebound between.
struct Target {
  Target(std::string target_name, uint32_t element, uint64_t capacity)
      : name(std::move(target_name)),
        element_bytes(element),
        count(capacity),
        knowledge(element * capacity) {}

  Buffer& bound() { return buffers[bound_index]; }
  uint64_t bytes() const noexcept { return element_bytes * count; }
  Destination destination(size_t buffer) const {
    return {buffers[buffer].data(), count, element_bytes};
  }

  const std::string name;
  const uint32_t element_bytes;
  const uint64_t count;
  std::optional<size_t> mirror;

  Mutex mutex;  // of the callers; held by calls that must be alone
  std::vector<Buffer> buffers;
  size_t bound_index = 0;
  Bytes last;                 // the values of the last call
  int in_flight = 0;          // calls through the mirror
  bool overlapped = false;    // some of them at the same time
  bool batch_failed = false;  // the last batch through the mirror did
  MirrorKnowledge knowledge;
};

// A call that the library made, and what it asked of the device meanwhile.
struct FinishedCall {
  Expected<CopyOutcome> outcome;
  DeviceCalls asked;
  bool wait = false;
  bool capturing = false;
  bool legacy = false;      // on the stream that takes no batches
  bool alone = true;        // no other call of the library at the same time
  bool overlapped = false;  // another call on the same mirror was

  uint64_t transfers() const noexcept { return asked.copies + asked.batches; }
  bool enqueued() const noexcept {
    return outcome && (outcome->kind == CopyOutcome::Kind::kIssued ||
                       outcome->kind == CopyOutcome::Kind::kTrimmed);
  }
  bool would_block() const noexcept {
    return outcome && outcome->kind == CopyOutcome::Kind::kWouldBlock;
  }
  // Whether it failed and may have enqueued its copy.
  bool may_have_written() const noexcept {
    return !outcome && outcome.error().code == ErrorCode::kDevice && transfers() != 0;
  }
  bool refused() const noexcept {
    return !outcome && outcome.error().code == ErrorCode::kFailedPrecondition;
  }
};

class PlanRun {
 public:
  PlanRun(const Plan& plan, PlanHarness& harness, const StagerFactory& make_stager)
      : plan_(plan), harness_(harness), make_stager_(make_stager) {}

  RunResult Run();

 private:
  using CopyCall = std::function<Expected<CopyOutcome>()>;

  struct Lease {
    std::unique_ptr<LeaseUnderTest> lease;
    Target* target = nullptr;
    CallValues values;
  };
  struct Snapshot {
    std::string what;
    std::shared_ptr<Bytes> seen;
    std::set<Bytes> allowed = {};
    std::optional<ByteModel> content = {};  // instead of `allowed`: of a slab
  };
  // One copy of a batch while it is made.
  struct BatchPart {
    Target* target = nullptr;
    bool plain = false;  // then its target is locked
    CallValues values = {};
    Buffer* buffer = nullptr;
    uint64_t begun = 0;
    size_t model_call = 0;

    uint64_t image_bytes() const { return values.Image(target->count).size(); }
  };

  // set_up.cc
  bool SetUp();
  bool MakeTarget(uint32_t element_bytes, uint64_t count, size_t buffers);
  bool MakeSlabs();
  void RunTask(size_t task);
  void Execute(const PlanOp& op, size_t task);
  void ExecuteStep(const PlanOp& op);

  // copy_ops.cc
  void Copy(const PlanOp& op);
  void MirroredCopy(const PlanOp& op);
  void Acquire(const PlanOp& op, size_t task);
  void Submit(const PlanOp& op, size_t task);
  void Drop(const PlanOp& op, size_t task);
  // A kernel reads the buffer, which the snapshot is compared with at the end.
  void ReadLater(Buffer& buffer, const StreamUse& use, Snapshot snapshot);
  void PlainCall(Target& target, const StreamUse& use, const CallValues& values, bool wait,
                 const CopyCall& call);
  void MirroredCall(Target& target, const StreamUse& use, const CallValues& values, bool wait,
                    const CopyCall& call);
  void EndPlain(Target& target, const StreamUse& use, const CallValues& values,
                const FinishedCall& done);
  // `moved_origin`: the copy of this target was enqueued, for certain.
  void EndMirrored(const BatchPart& call, const StreamUse& use, const FinishedCall& done,
                   bool moved_origin);
  bool BeginMirrored(BatchPart& call, const StreamUse& use);
  FinishedCall Observed(const StreamUse& use, bool wait, const CopyCall& call);
  FinishedCall Observed(bool wait, const CopyCall& call);

  // batch_ops.cc
  void Batch(const PlanOp& op);
  std::vector<BatchPart> BeginBatch(const PlanOp& op, const StreamUse& use);
  bool BeginPart(BatchPart& part, const StreamUse& use);
  void EndBatch(const std::vector<BatchPart>& parts, const StreamUse& use,
                const FinishedCall& done);
  void CheckBatch(const std::vector<BatchPart>& parts, const FinishedCall& done);
  MirrorKnowledge::Bounds BytesDue(const BatchPart& part) const;
  void MarkBatch(const std::vector<BatchPart>& parts, const FinishedCall& done);

  // step_ops.cc
  void SetField(const PlanOp& op);
  void WriteField(const PlanOp& op, Slab& slab);
  void WritePart(const PlanOp& op, Slab& slab);
  Bytes NextOfStep(const PlanOp& op, const Slab& slab, size_t field, uint64_t row) const;
  void EditField(const PlanOp& op, Slab& slab);
  void EditRows(const PlanOp& op);
  void ChangeRow(const PlanOp& op, Slab& slab);
  void CheckRows(Slab& slab);
  void ForgetField(const PlanOp& op);
  void CheckKnown(Slab& slab);
  void RemakeStep(const PlanOp& op);
  bool MakeWriter(Slab& slab);
  void BadStepCall(const PlanOp& op);
  Expected<void> CallBadly(const PlanOp& op, Slab& slab, const StreamUse& use);

  // step_calls.cc: what reaches a slab, and what a submit may answer.
  void SubmitStep(const PlanOp& op);
  void SubmitSlab(Slab& slab, const StreamUse& use, bool wait);
  void EndStep(Slab& slab, const StreamUse& use, const FinishedCall& done, uint64_t begun);
  void CheckStep(const Slab& slab, const FinishedCall& done);
  void GraphWrite(const PlanOp& op);
  void PlainToSlab(const PlanOp& op);
  void ReadStep(const PlanOp& op);
  void ReadSlab(Slab& slab, const StreamUse& use);
  void FinishSteps();

  // copy_checks.cc: what one call may answer and ask of the device.
  void CheckCall(uint64_t capacity, const CallValues& values, const FinishedCall& done);
  void CheckAsked(const FinishedCall& done);
  void CheckError(const FinishedCall& done, bool brings_nothing);
  void CheckOutcome(uint64_t capacity, const CallValues& values, const FinishedCall& done);
  // What is the same for a copy, a step and a batch of `asked_bytes` bytes.
  void CheckTransfer(const FinishedCall& done, uint64_t asked_bytes);
  void CheckDue(const MirrorKnowledge::Bounds& due, const FinishedCall& done);
  void CheckLimits();
  void CountOutcome(const FinishedCall& done);

  // mirror_ops.cc
  void Read(const PlanOp& op);
  void ReadBuffer(Target& target, size_t buffer, const StreamUse& use);
  void ForeignWrite(const PlanOp& op);
  void Record(const PlanOp& op);
  void Invalidate(const PlanOp& op);
  void Matches(const PlanOp& op);
  void Rebind(const PlanOp& op);
  void RemakeMirror(const PlanOp& op);

  // device_ops.cc
  void Hold(const PlanOp& op);
  void Release(const PlanOp& op);
  void CompleteNext(const PlanOp& op);
  void BeginCapture(const PlanOp& op, size_t task);
  void EndCapture(StreamSlot& slot);
  void EndCaptures(size_t task);
  void RemakeStream(const PlanOp& op);
  void Fault(const PlanOp& op);
  void BadCall(const PlanOp& op);

  // final_checks.cc
  void CheckEnd();
  void CheckSnapshots();
  void CheckSlotsComeBack();
  void CheckStats();
  void TearDown();

  void Fail(std::string why);
  // Fails when a call of the callers themselves went wrong: a fault of the test.
  bool Required(const Expected<void>& done, const char* what);
  AccessMark MarkAfterCall(const StreamUse& use);
  Target& TargetAt(const PlanOp& op) { return targets_[op.target % targets_.size()]; }
  Target& MirroredAt(const PlanOp& op) { return targets_[op.target % mirrors_]; }
  // Null when the stager has no steps.
  Slab* SlabAt(const PlanOp& op) {
    return slabs_.empty() ? nullptr : &slabs_[op.target % slabs_.size()];
  }
  // Steps and batches use the legacy stream as well.
  StreamSlot& StepStreamAt(const PlanOp& op) {
    return op.variant >> 5 == 7 ? legacy_ : streams_.At(op.stream);
  }
  void Reach(PlanMark mark) { ++result_.counts.marks[static_cast<size_t>(mark)]; }
  void Count(const PlanOp& op) { ++result_.counts.ops[static_cast<size_t>(op.kind)]; }

  const Plan& plan_;
  PlanHarness& harness_;
  const StagerFactory& make_stager_;
  StagerOptions options_;
  bool steady_ = false;  // all the memory that the limit allows is there from the start
  std::unique_ptr<StagerUnderTest> stager_;
  StreamTable streams_;
  StreamSlot legacy_;
  std::deque<Target> targets_;  // the mirrored ones first
  std::optional<StepFields> fields_;
  std::deque<Slab> slabs_;  // none when the plan has no operation of steps
  size_t mirrors_ = 0;
  std::vector<std::vector<Lease>> leases_;  // of each task
  std::vector<Snapshot> snapshots_;
  int calls_now_ = 0;         // that may take or make slots, by all tasks
  uint64_t calls_begun_ = 0;  // so far
  RunResult result_;
};

}  // namespace h2d::testing

#endif  // H2D_TESTS_SUPPORT_PLAN_RUN_H_
