// Operations on the device: held, captured and new streams, faults.
#include <utility>

#include "h2d/tests/support/plan_run.h"

namespace h2d::testing {

void PlanRun::Hold(const PlanOp& op) {
  StreamUse use(streams_.At(op.stream));
  if (!use || use.slot().held || use.slot().capturing || !harness_.CanHold()) return;
  Count(op);
  // Held from the device's answer on: another task's release may come in between.
  use.slot().held = Required(harness_.Hold(use.stream()), "holding a stream");
}

void PlanRun::Release(const PlanOp& op) {
  StreamUse use(streams_.At(op.stream));
  if (!use || !use.slot().held) return;
  Count(op);
  use.slot().held = !Required(harness_.Release(use.stream()), "releasing a stream");
}

void PlanRun::CompleteNext(const PlanOp& op) {
  StreamUse use(streams_.At(op.stream));
  if (!use || !use.slot().held) return;
  Count(op);
  Required(harness_.CompleteNext(use.stream()), "completing an operation");
}

void PlanRun::BeginCapture(const PlanOp& op, size_t task) {
  StreamAlone alone(streams_.At(op.stream));
  if (!alone || alone.slot().capturing || alone.slot().held) return;
  Count(op);
  if (!Required(harness_.BeginCapture(*alone.slot().stream, op.variant), "beginning a capture")) {
    return;
  }
  alone.slot().capturing = true;
  alone.slot().capture_task = task;
}

void PlanRun::EndCapture(StreamSlot& slot) {
  StreamAlone alone(slot);
  if (!alone) return;
  slot.capturing = false;
  const Expected<size_t> recorded = harness_.EndCapture(*slot.stream);
  ++result_.counts.ops[static_cast<size_t>(OpKind::kEndCapture)];
  if (!recorded) return Fail("a capture was invalidated (I7): " + recorded.error().ToString());
  if (*recorded != 0) {
    Fail("the library recorded " + std::to_string(*recorded) + " operations into a graph (I7)");
  }
}

// A capture ends on the thread that began it.
void PlanRun::EndCaptures(size_t task) {
  for (StreamSlot& slot : streams_.slots()) {
    if (!slot.capturing || slot.capture_task != task) continue;
    // Not while another task is inside a call that has to be refused: that one runs on meanwhile.
    while (slot.users != 0) {
      harness_.Yield();
    }
    EndCapture(slot);
  }
}

void PlanRun::RemakeStream(const PlanOp& op) {
  StreamAlone alone(streams_.At(op.stream));
  if (!alone || alone.slot().capturing || alone.slot().held) return;
  Count(op);
  StreamSlot& slot = alone.slot();
  if (!Required(harness_.DestroyStream(*slot.stream), "destroying a stream")) return;
  ++slot.generation;
  Expected<Stream> made =
      harness_.NewStream("s" + std::to_string(op.stream % streams_.slots().size()) + "." +
                         std::to_string(slot.generation));
  if (!made) return Fail("no new stream: " + made.error().ToString());
  slot.stream = *made;
}

void PlanRun::Fault(const PlanOp& op) {
  Count(op);
  h2d::Fault fault;
  fault.kind = kCallKinds[op.target % kCallKinds.size()];
  fault.call = 1 + op.length % 8;
  fault.span = op.flag(0) ? FaultSpan::kForEver : FaultSpan::kOnce;
  fault.timing = op.flag(1) ? FaultTiming::kAfterCall : FaultTiming::kBeforeCall;
  harness_.ArmFault(std::move(fault));
}

}  // namespace h2d::testing
