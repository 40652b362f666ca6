#include "h2d/tests/uploads/release_run.h"

#include <chrono>

namespace h2d::testing {
namespace {

// Owns pinned memory and counts its end.
struct Source {
  PinnedBuffer memory;
  std::shared_ptr<uint64_t> ended;
  void operator()() const { ++*ended; }
};

}  // namespace

ReleaseRun::ReleaseRun(uint64_t seed, bool with_faults)
    : ReleaseRun(seed, with_faults, nullptr, true) {}
ReleaseRun::ReleaseRun(uint64_t seed, const ReleaseQueueOptions& limits, bool keep_trace)
    : ReleaseRun(seed, false, &limits, keep_trace) {}

ReleaseRun::ReleaseRun(uint64_t seed, bool with_faults, const ReleaseQueueOptions* limits,
                       bool keep_trace)
    : random_(seed), with_faults_(with_faults) {
  FakeOptions options;
  options.keep_trace = keep_trace;
  if (seed != 0) options.choices = std::make_shared<HashChoices>(seed);
  // A call that blocks on a stream that is held would block for good, and so would every copy of
  // a confidential machine.
  options.adversaries =
      ChoiceSites::Live().Without(ChoiceSite::kEnqueueBlocks).Without(ChoiceSite::kConfidential);
  fake_ = FakeDevice::Create(options);
  faulty_ = FaultyDevice::Create(fake_);
  for (const char* name : {"a", "b", "c"}) {
    streams_.push_back(fake_->NewStream(name));
    targets_.push_back(fake_->AllocateDevice(kSourceBytes).value());
  }
  limits_ = limits != nullptr ? *limits : DrawLimits();
  queue_ = *ReleaseQueue::Create(faulty_, limits_);
  held_.assign(kStreams, false);
  capturing_.assign(kStreams, false);
}

ReleaseQueueOptions ReleaseRun::DrawLimits() {
  ReleaseQueueOptions limits;
  limits.flush_items = 1 + Draw(4);
  limits.flush_bytes = kSourceBytes * (1 + Draw(6));
  limits.max_items = limits.flush_items + Draw(4);
  limits.max_bytes = limits.flush_bytes + kSourceBytes * Draw(4);
  limits.wait_timeout = std::chrono::microseconds(Draw(2) * 100);
  return limits;
}

void ReleaseRun::Step(uint32_t stream) {
  switch (Draw(12)) {
    case 0:
      return Flush(stream);
    case 1:
    case 2:
      return Poll();
    case 3:
      return ToggleHold(stream);
    case 4:
      return ToggleCapture(stream);
    case 5:
      return InjectFault();
    case 6:
      return fake_->AdvanceTime(std::chrono::microseconds(20));
    default:
      return CopyAndPush(stream);
  }
}

void ReleaseRun::SharedStep(uint32_t stream, uint32_t draw) {
  if (draw == 0) return Flush(stream);
  if (draw == 1) return Poll();
  CopyAndPush(stream);
}

std::string ReleaseRun::Verdict() {
  faulty_->ClearFaults();
  for (uint32_t i = 0; i < kStreams; ++i) {
    if (held_[i]) ToggleHold(i);
    if (capturing_[i]) ToggleCapture(i);
  }
  // All but what the queue refused: that stayed here, and its copies are complete by then.
  for (int round = 0; round < 2; ++round) {
    if (auto drained = queue_->Drain(); !drained) Fail(drained.error().ToString());
  }
  const ReleaseQueueStats stats = queue_->stats();
  if (stats.held_items != 0 || stats.held_bytes != 0) Fail("sources are held after a drain");
  if (stats.released != pushed_ || *ended_ != pushed_) Fail("a source was not released once");
  queue_.reset();
  if (!fake_->SynchronizeDevice()) Fail("the device did not come to rest");
  refused_.clear();
  if (!fake_->hazards().empty()) Fail(fake_->hazards().front().ToString());
  return failure_;
}

void ReleaseRun::AddTo(ReleaseTotals& totals) const {
  totals.pushed += pushed_;
  totals.refused += refusals_;
  totals.put_off += put_off_;
  totals.faults += faulty_->FaultCount();
}

HeldSource ReleaseRun::NewSource(PinnedBuffer memory) const {
  return HeldSource(Source{std::move(memory), ended_}, kSourceBytes);
}

void ReleaseRun::CopyAndPush(uint32_t stream) {
  if (capturing_[stream]) return PushNothing(stream);
  auto memory = fake_->AllocatePinned(kSourceBytes);
  if (!memory) return Fail(memory.error().ToString());
  const auto bytes = memory->bytes();
  // Whatever it answers: a copy whose call failed may run.
  static_cast<void>(faulty_->CopyAsync(targets_[stream], bytes, streams_[stream]));
  Push(NewSource(*std::move(memory)), stream);
}

// A source that was read before, by work that is long complete, pushed during a capture.
void ReleaseRun::PushNothing(uint32_t stream) {
  auto memory = fake_->AllocatePinned(kSourceBytes);
  if (!memory) return Fail(memory.error().ToString());
  Push(NewSource(*std::move(memory)), stream);
}

void ReleaseRun::Push(HeldSource source, uint32_t stream) {
  const auto result = queue_->Push(std::move(source), streams_[stream]);
  if (result) {
    ++pushed_;
    if (source) Fail("a source that was taken is still the caller's");
  } else {
    ++refusals_;
    if (!source) return Fail("a source that was refused is gone");
    refused_.push_back(std::move(source));
  }
  const ReleaseQueueStats stats = queue_->stats();
  if (stats.held_items > kStreams * limits_.max_items) Fail("more items are held than may be");
  if (stats.held_bytes > kStreams * limits_.max_bytes) Fail("more bytes are held than may be");
}

void ReleaseRun::Flush(uint32_t stream) {
  const auto flushed = queue_->Flush(streams_[stream]);
  if (flushed && *flushed == FlushOutcome::kPutOff) ++put_off_;
  if (flushed && (*flushed == FlushOutcome::kFlushed) && capturing_[stream])
    Fail("a flush went into a capture");
}

void ReleaseRun::ToggleHold(uint32_t stream) {
  const auto done =
      held_[stream] ? fake_->Release(streams_[stream]) : fake_->Hold(streams_[stream]);
  if (!done) return Fail(done.error().ToString());
  held_[stream] = !held_[stream];
}

void ReleaseRun::ToggleCapture(uint32_t stream) {
  if (!capturing_[stream]) {
    if (auto begun = fake_->BeginCapture(streams_[stream]); !begun)
      return Fail(begun.error().ToString());
  } else if (auto graph = fake_->EndCapture(streams_[stream]); !graph) {
    return Fail("a capture was invalidated: " + graph.error().ToString());
  } else if (graph->operations() != 0) {
    return Fail("something was recorded into a capture");
  }
  capturing_[stream] = !capturing_[stream];
}

void ReleaseRun::InjectFault() {
  if (!with_faults_) return;
  constexpr CallKind kKinds[] = {CallKind::kRecord,  CallKind::kQuery,       CallKind::kWaitAny,
                                 CallKind::kInspect, CallKind::kCreateEvent, CallKind::kCopyAsync};
  const CallKind kind = kKinds[Draw(6)];
  faulty_->Inject({.kind = kind,
                   .call = faulty_->CallCount(kind) + 1 + Draw(2),
                   .timing = Draw(2) == 0 ? FaultTiming::kBeforeCall : FaultTiming::kAfterCall});
}

}  // namespace h2d::testing
