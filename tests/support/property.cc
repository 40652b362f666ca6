#include "h2d/tests/support/property.h"

#include <rapidcheck.h>

#include <algorithm>
#include <iostream>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "h2d/tests/support/crash_token.h"
#include "h2d/tests/support/random_runs.h"
#include "h2d/tests/support/shrink_plan.h"

namespace h2d::testing {

// Found by rapidcheck, which shows the values of a property that failed.
void showValue(const Plan& plan, std::ostream& os) { os << PlanToToken(EncodePlan(plan)); }

namespace {

using Record = std::array<uint8_t, kPlanOpBytes>;
using Header = std::array<uint8_t, kPlanHeaderBytes>;

uint64_t HashOf(std::string_view text) {
  uint64_t hash = 14695981039346656037ULL;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 1099511628211ULL;
  return hash;
}

// The kinds that one plan draws from, each as often as its weight says. A kind stays with odds of
// three in four, by the bits of `swarm`; copies through mirrors and reads always do.
std::vector<OpKind> KindsOf(const PlanProfile& profile, uint64_t swarm) {
  std::vector<OpKind> kinds;
  for (uint32_t i = 0; i < kOpKinds; ++i) {
    const auto kind = static_cast<OpKind>(i);
    const bool always = kind == OpKind::kMirroredCopy || kind == OpKind::kRead;
    if (!always && (swarm >> (2 * i) & 3) == 0) continue;
    kinds.insert(kinds.end(), profile.weights[i], kind);
  }
  return kinds;
}

Plan MakePlan(const PlanProfile& profile, const Header& header, uint64_t swarm,
              const std::vector<Record>& records) {
  std::vector<uint8_t> bytes(header.begin(), header.end());
  for (const Record& record : records) bytes.insert(bytes.end(), record.begin(), record.end());
  Plan plan = DecodePlan(bytes);
  const std::vector<OpKind> kinds = KindsOf(profile, swarm);
  for (size_t i = 0; i < plan.ops.size(); ++i) {
    plan.ops[i].kind = kinds[records[i][0] * kinds.size() / 256];
    if (profile.fix_op) profile.fix_op(plan.ops[i]);
  }
  // Half of the plans have all adversaries at once; only enqueues that block stay a matter of luck,
  // because they exclude held streams.
  if (plan.header.reserved[0] >= 128) {
    plan.header.adversaries[0] |= 0x7f;
    plan.header.adversaries[1] |= 0x07;
  }
  plan.header.reserved = {};
  if (profile.fix_header) profile.fix_header(plan.header);
  return plan;
}

// Bytes are uniform whatever size rapidcheck has reached.
rc::Gen<Plan> PlansOf(const PlanProfile& profile) {
  const auto byte = rc::gen::resize(rc::kNominalSize, rc::gen::arbitrary<uint8_t>());
  const auto record = rc::gen::container<Record>(byte);
  const auto records = rc::gen::resize(static_cast<int>(profile.max_ops),
                                       rc::gen::container<std::vector<Record>>(record));
  const auto swarm =
      rc::gen::noShrink(rc::gen::resize(rc::kNominalSize, rc::gen::arbitrary<uint64_t>()));
  return rc::gen::map(rc::gen::tuple(rc::gen::container<Header>(byte), swarm, records),
                      [profile](const std::tuple<Header, uint64_t, std::vector<Record>>& drawn) {
                        return MakePlan(profile, std::get<0>(drawn), std::get<1>(drawn),
                                        std::get<2>(drawn));
                      });
}

// What all plans of one property did together.
class Tally {
 public:
  void Add(const Plan& plan, const RunResult& result) {
    ++report_.plans;
    lengths_.push_back(plan.ops.size());
    const uint64_t streams = plan.header.stream_count();
    const uint64_t tasks = plan.header.task_count();
    report_.fewest_streams =
        std::min(report_.plans == 1 ? streams : report_.fewest_streams, streams);
    report_.fewest_tasks = std::min(report_.plans == 1 ? tasks : report_.fewest_tasks, tasks);
    RunCounts& sum = report_.totals;
    for (size_t i = 0; i < kOpKinds; ++i) sum.ops[i] += result.counts.ops[i];
    for (size_t i = 0; i < kPlanMarkCount; ++i) sum.marks[i] += result.counts.marks[i];
    for (const auto member :
         {&RunCounts::issued, &RunCounts::trimmed, &RunCounts::skipped, &RunCounts::would_block,
          &RunCounts::refused, &RunCounts::unavailable, &RunCounts::device_errors,
          &RunCounts::reads_checked, &RunCounts::overlapped, &RunCounts::bytes_sent}) {
      sum.*member += result.counts.*member;
    }
  }

  PropertyReport Report() && {
    std::sort(lengths_.begin(), lengths_.end());
    if (!lengths_.empty()) report_.median_ops = lengths_[lengths_.size() / 2];
    return std::move(report_);
  }

 private:
  PropertyReport report_;
  std::vector<uint64_t> lengths_;
};

RunResult RunGuarded(const Plan& plan, const PlanCheck& check, bool keep_trace) {
  SetCrashPlan(EncodePlan(plan));
  RunResult result = check(plan, keep_trace);
  ClearCrashPlan();
  return result;
}

std::string Describe(const Plan& plan, const RunResult& result) {
  return result.failure + "\n\nReplay with H2D_REPLAY=" + PlanToToken(EncodePlan(plan)) + "\n\n" +
         PlanToString(plan) + "\n" + result.timeline;
}

PropertyReport Replay(std::string_view token, const PlanCheck& check) {
  PropertyReport report;
  const auto bytes = PlanFromToken(token);
  if (!bytes) {
    report.failure = "H2D_REPLAY is not a token: " + std::string(token);
    return report;
  }
  const Plan plan = DecodePlan(*bytes);
  const RunResult result = RunGuarded(plan, check, true);
  std::cerr << Describe(plan, result) << "\n";
  if (!result.ok()) report.failure = result.failure;
  report.plans = 1;
  return report;
}

}  // namespace

PlanProfile GeneralProfile() {
  PlanProfile profile;
  const auto set = [&](OpKind kind, uint8_t weight) {
    profile.weights[static_cast<size_t>(kind)] = weight;
  };
  set(OpKind::kCopy, 3);
  set(OpKind::kMirroredCopy, 12);
  set(OpKind::kRead, 6);
  set(OpKind::kAcquire, 2);
  set(OpKind::kSubmit, 3);
  set(OpKind::kDrop, 1);
  set(OpKind::kInvalidate, 1);
  set(OpKind::kMatches, 1);
  set(OpKind::kForeignWrite, 1);
  set(OpKind::kRecord, 1);
  set(OpKind::kRebind, 1);
  set(OpKind::kRemakeMirror, 1);
  set(OpKind::kHold, 2);
  set(OpKind::kRelease, 2);
  set(OpKind::kCompleteNext, 2);
  set(OpKind::kAdvance, 1);
  set(OpKind::kBeginCapture, 1);
  set(OpKind::kEndCapture, 1);
  set(OpKind::kRemakeStream, 1);
  set(OpKind::kBadCall, 1);
  set(OpKind::kSetField, 4);
  set(OpKind::kEditRows, 6);
  set(OpKind::kSubmitStep, 6);
  set(OpKind::kForgetField, 1);
  set(OpKind::kReadSlab, 2);
  set(OpKind::kGraphWrite, 1);
  set(OpKind::kPlainToSlab, 1);
  set(OpKind::kRemakeStep, 1);
  set(OpKind::kBatch, 4);
  set(OpKind::kBadStepCall, 1);
  return profile;
}

PlanProfile WithoutSteps(PlanProfile profile) {
  for (auto kind = static_cast<size_t>(kFirstStepOp); kind < kOpKinds; ++kind) {
    profile.weights[kind] = 0;
  }
  return profile;
}

PlanProfile ProfileWith(std::initializer_list<std::pair<OpKind, uint8_t>> weights) {
  PlanProfile profile = GeneralProfile();
  for (const auto& [kind, weight] : weights) profile.weights[static_cast<size_t>(kind)] = weight;
  return profile;
}

PropertyReport CheckPlans(std::string_view name, const PlanProfile& profile, const PlanCheck& check,
                          uint64_t plans) {
  if (const auto token = ReplayedPlan()) return Replay(*token, check);
  rc::detail::TestMetadata metadata;
  metadata.id = metadata.description = std::string(name);
  rc::detail::TestParams params;
  params.seed = HashOf(name) + SeedFromEnvironment();
  params.maxSuccess = static_cast<int>(plans);
  params.disableShrinking = true;  // `ShrinkPlan` needs a hundredth of the runs

  Tally tally;
  std::optional<Plan> failing;
  uint64_t until_failure = 0;
  const rc::Gen<Plan> gen = PlansOf(profile);
  rc::detail::checkTestable(
      [&] {
        const Plan plan = *gen;
        const RunResult result = RunGuarded(plan, check, false);
        if (!failing) {
          tally.Add(plan, result);
          ++until_failure;
        }
        if (!result.ok()) failing = plan;
        RC_ASSERT(result.ok());
      },
      metadata, params);
  PropertyReport report = std::move(tally).Report();
  if (failing) {
    const auto fails = [&](const Plan& plan) { return !RunGuarded(plan, check, false).ok(); };
    if (profile.shrink && fails(*failing)) failing = ShrinkPlan(*std::move(failing), fails);
    const RunResult result = RunGuarded(*failing, check, true);
    report.failure = result.ok()
                         ? "a plan failed, and passed when it was run again: the run is not "
                           "a function of its choices (I11)"
                         : Describe(*failing, result);
    report.token = PlanToToken(EncodePlan(*failing));
    report.plans_until_failure = until_failure;
  }
  return report;
}

std::string ToString(const PropertyReport& report) {
  const RunCounts& sum = report.totals;
  std::string text =
      std::to_string(report.plans) + " plans, median " + std::to_string(report.median_ops) +
      " operations, at least " + std::to_string(report.fewest_streams) + " streams and " +
      std::to_string(report.fewest_tasks) + " tasks; issued " + std::to_string(sum.issued) +
      ", trimmed " + std::to_string(sum.trimmed) + ", skipped " + std::to_string(sum.skipped) +
      ", would block " + std::to_string(sum.would_block) + ", refused " +
      std::to_string(sum.refused) + ", unavailable " + std::to_string(sum.unavailable) +
      ", device errors " + std::to_string(sum.device_errors) + ", overlapped " +
      std::to_string(sum.overlapped) + ", reads checked " + std::to_string(sum.reads_checked) +
      "\n ";
  for (size_t i = 0; i < kOpKinds; ++i) {
    text += " " + std::string(ToString(static_cast<OpKind>(i))) + " " + std::to_string(sum.ops[i]);
  }
  return text;
}

}  // namespace h2d::testing
