// What must hold when every operation of a plan has completed.
#include <utility>

#include "h2d/tests/support/plan_run.h"

namespace h2d::testing {
namespace {

std::string Differences(const Bytes& seen, const Bytes& allowed) {
  std::string text;
  for (size_t i = 0; i < seen.size() && text.size() < 200; ++i) {
    if (seen[i] == allowed[i]) continue;
    const bool guard = i < kGuardBytes || i >= seen.size() - kGuardBytes;
    text += (text.empty() ? "byte " : ", ") + std::to_string(static_cast<long>(i) - kGuardBytes) +
            (guard ? " (outside)" : "") + " is " + HexBytes({seen[i]}) + " for " +
            HexBytes({allowed[i]});
  }
  return text;
}

}  // namespace

void PlanRun::CheckEnd() {
  harness_.Calm();
  harness_.DisarmFaults();
  for (StreamSlot& slot : streams_.slots()) {
    if (slot.held) Required(harness_.Release(*slot.stream), "releasing a stream");
    slot.held = false;
  }
  for (auto& held : leases_) held.clear();
  if (!result_.ok()) return;
  // A copy on each stream ends what an earlier fault left in quarantine there, and each must work:
  // after every error the next good call does.
  Target& plain = targets_[mirrors_];
  harness_.Finish();
  const auto copy_on = [&](StreamSlot& slot) {
    StreamUse use(slot);
    CallValues values{.element_bytes = plain.element_bytes, .values = Bytes(plain.bytes(), 7)};
    PlainCall(plain, use, values, true, [&] {
      return stager_->Copy(plain.destination(0), values.View(), use.stream(), true);
    });
    harness_.Finish();
  };
  for (StreamSlot& slot : streams_.slots()) copy_on(slot);
  if (!slabs_.empty()) copy_on(legacy_);
  FinishSteps();
  StreamUse use(streams_.At(0));
  for (Target& target : targets_) {
    for (size_t i = 0; i < target.buffers.size(); ++i) ReadBuffer(target, i, use);
  }
  if (const size_t left = harness_.Finish(); left != 0) {
    Fail(std::to_string(left) + " operations never completed");
  }
  CheckSnapshots();
  CheckStats();
  CheckSlotsComeBack();
}

void PlanRun::CheckSnapshots() {
  for (const Snapshot& snapshot : snapshots_) {
    ++result_.counts.reads_checked;
    if (snapshot.seen->empty()) {
      Fail("a kernel never ran");
    } else if (snapshot.content) {
      const std::optional<size_t> wrong = snapshot.content->FirstWrong(*snapshot.seen);
      if (!wrong) continue;
      const long at = static_cast<long>(*wrong) - static_cast<long>(Slab::kGuardBytes);
      Fail("a reader of " + snapshot.what + " saw what no full step left (I3, I4): byte " +
           std::to_string(at) + " is " + HexBytes({(*snapshot.seen)[*wrong]}) + " for " +
           HexBytes({snapshot.content->bytes()[*wrong]}));
    } else if (!snapshot.allowed.contains(*snapshot.seen)) {
      Fail("a reader of " + snapshot.what + " saw what no full copy left (I3, I4): " +
           Differences(*snapshot.seen, *snapshot.allowed.begin()) + "; " +
           std::to_string(snapshot.allowed.size()) + " contents were allowed");
    }
  }
}

// When nothing is in flight every slot can be had, and no more than that; and whatever sizes were
// used before, the whole of the pinned memory serves one value (I10).
void PlanRun::CheckSlotsComeBack() {
  if (!stager_->stats() || !result_.ok()) return;
  // A slot whose record failed waits for a record on its stream, which may be gone.
  const uint64_t remade = result_.counts.ops[static_cast<size_t>(OpKind::kRemakeStream)];
  if (harness_.faults_fired() != 0 && remade != 0) return;
  std::vector<std::unique_ptr<LeaseUnderTest>> all;
  for (uint32_t i = 0; i <= options_.max_slots; ++i) {
    auto lease = stager_->Acquire(1, false);
    if (!lease) return Fail("no slot after all completed: " + lease.error().ToString());
    if ((*lease != nullptr) != (i < options_.max_slots)) {
      return Fail(std::to_string(i) + " of " + std::to_string(options_.max_slots) +
                  " slots could be had after all copies completed (I1)");
    }
    all.push_back(std::move(*lease));
  }
  all.clear();
  auto whole = stager_->Acquire(options_.max_pinned_bytes, false);
  if (!whole || *whole == nullptr) {
    Fail("idle memory of other sizes kept " + std::to_string(options_.max_pinned_bytes) +
         " B from being served within the limit (I10)");
  }
  CheckLimits();
}

void PlanRun::CheckStats() {
  const std::optional<StagerStats> stats = stager_->stats();
  if (!stats || !result_.ok()) return;
  RunCounts& counts = result_.counts;
  counts.stats = *stats;
  // A failed call may have enqueued its copy, and then counts as one.
  const bool exact = counts.device_errors == 0;
  const auto differ = [&](const char* what, uint64_t said, uint64_t happened, bool at_least) {
    if (said == happened || (at_least && said >= happened)) return;
    Fail("the statistics say " + std::to_string(said) + " " + what + "; there were " +
         std::to_string(happened));
  };
  differ("issued copies", stats->copies_issued, counts.issued, !exact);
  differ("trimmed copies", stats->copies_trimmed, counts.trimmed, !exact);
  differ("skipped copies", stats->copies_skipped, counts.skipped, false);
  differ("calls that would block", stats->would_block, counts.would_block + counts.slots_refused,
         false);
  differ("bytes sent", stats->bytes_sent, counts.bytes_sent, !exact);
  if (stats->slots_in_use > stats->slots_in_use_most ||
      stats->pinned_bytes > stats->pinned_bytes_most) {
    Fail("the statistics say that more is in use than at most was");
  }
}

// The stager goes while its copies are in flight and while one of its slots is held.
void PlanRun::TearDown() {
  for (auto& held : leases_) held.clear();
  if (stager_ == nullptr) return;
  std::unique_ptr<LeaseUnderTest> outlives;
  if (result_.ok()) {
    Target& plain = targets_[mirrors_];
    const CallValues values{.element_bytes = plain.element_bytes,
                            .values = Bytes(plain.bytes(), 9)};
    for (StreamSlot& slot : streams_.slots()) {
      StreamUse use(slot);
      PlainCall(plain, use, values, true, [&] {
        return stager_->Copy(plain.destination(0), values.View(), use.stream(), true);
      });
    }
    auto lease = stager_->Acquire(1, true);
    if (lease) outlives = std::move(*lease);
  }
  stager_.reset();
  outlives.reset();
  StreamUse use(streams_.At(0));
  for (Slab& slab : slabs_) {
    if (!slab.writer || !result_.ok()) continue;
    const auto late = slab.writer->Submit(use.stream());
    if (late || late.error().code != ErrorCode::kFailedPrecondition) {
      Fail("a step writer whose stager is gone did not say so");
    }
  }
  slabs_.clear();
  if (harness_.Finish() != 0) return;
  if (harness_.faults_fired() == 0 && harness_.PinnedBytesOwned() != 0) {
    Fail(std::to_string(harness_.PinnedBytesOwned()) +
         " B of pinned memory were not handed back at the end (I9)");
  }
}

}  // namespace h2d::testing
