#include "h2d/tests/support/plan.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "h2d/tests/support/base64url.h"

namespace h2d::testing {
namespace {

constexpr std::string_view kTokenPrefix = "h2d1:";

// `PlanOp` and `PlanHeader` are their encodings: bytes only, in the order of their members.
static_assert(sizeof(PlanOp) == kPlanOpBytes && alignof(PlanOp) == 1);
static_assert(sizeof(PlanHeader) == kPlanHeaderBytes && alignof(PlanHeader) == 1);

template <class T>
T FromBytes(std::span<const uint8_t> bytes) {
  T value;
  const size_t given = std::min(bytes.size(), sizeof(T));
  std::array<uint8_t, sizeof(T)> padded = {};
  std::copy_n(bytes.begin(), given, padded.begin());
  std::memcpy(&value, padded.data(), sizeof(T));
  return value;
}

template <class T>
void AppendBytes(const T& value, std::vector<uint8_t>& out) {
  const auto* first = reinterpret_cast<const uint8_t*>(&value);
  out.insert(out.end(), first, first + sizeof(T));
}

// What is 0 is left out, so that a plan that was shrunk is short to read.
std::string OpToString(const PlanOp& op, const PlanHeader& header) {
  std::string text = "task " + std::to_string(op.task % header.task_count()) + " " +
                     std::string(ToString(op.kind)) + ", stream " +
                     std::to_string(op.stream % header.stream_count());
  const auto add = [&](const char* name, uint32_t value) {
    if (value != 0) text += std::string(", ") + name + " " + std::to_string(value);
  };
  add("target", op.target);
  add("variant", op.variant);
  add("length", op.length);
  if (op.edit_kind() != Edit::kSame) text += ", edit " + std::string(ToString(op.edit_kind()));
  add("position", op.position);
  add("span", op.span);
  add("value", op.value);
  add("pad", op.pad);
  add("extra", op.extra);
  if (op.choices == PlanOp().choices) return text;
  text += "; unkind device";
  for (const uint8_t choice : op.choices) text += " " + std::to_string(choice);
  return text;
}

}  // namespace

std::string_view ToString(OpKind kind) noexcept {
  constexpr std::array<std::string_view, kOpKinds> kNames = {
      "copy",         "mirrored copy", "read",          "acquire",     "submit",
      "drop",         "invalidate",    "matches",       "foreign",     "record",
      "rebind",       "remake mirror", "hold",          "release",     "complete next",
      "advance",      "begin capture", "end capture",   "new stream",  "fault",
      "bad call",     "set field",     "edit rows",     "submit step", "forget field",
      "read slab",    "graph write",   "plain to slab", "remake step", "batch",
      "bad step call"};
  return kNames[static_cast<size_t>(kind) % kOpKinds];
}

std::string_view ToString(Edit edit) noexcept {
  constexpr std::array<std::string_view, kEdits> kNames = {
      "same", "one", "span", "both ends", "flip zero", "nan", "shrink", "grow", "fresh"};
  return kNames[static_cast<size_t>(edit) % kEdits];
}

StagerOptions PlanHeader::stager_options() const noexcept {
  constexpr std::array<uint64_t, 4> kSlotBytes = {256, 64, 1024, 512};
  StagerOptions options;
  options.slot_bytes = kSlotBytes[slot_bytes % kSlotBytes.size()];
  options.max_slots = 2 + max_slots % 5;
  options.initial_slots = 1 + initial_slots % options.max_slots;
  // Between what all slots of the usual size need and four times that, but always room for the
  // largest value that a plan copies.
  const uint64_t usual = std::max<uint64_t>(options.slot_bytes, 256) * options.max_slots;
  options.max_pinned_bytes = std::max<uint64_t>(usual * (1 + pinned_limit % 4), 4096);
  constexpr std::array<uint64_t, 4> kMinTrim = {1, 8, 32, ~uint64_t{0}};
  options.min_trim_bytes = kMinTrim[min_trim % 8 < 5 ? 0 : min_trim % 8 - 4];
  options.on_growth_failure =
      growth_failure % 2 == 0 ? OnGrowthFailure::kError : OnGrowthFailure::kWait;
  options.wait_timeout = std::chrono::microseconds(wait_timeout % 2 == 0 ? 1000 : 20);
  return options;
}

StepWriterOptions PlanHeader::step_writer_options() const noexcept {
  constexpr std::array<uint64_t, 3> kCoverGapBytes = {StepWriterOptions().cover_gap_bytes, 0, 12};
  return {.cover_gap_bytes = kCoverGapBytes[cover_gap % kCoverGapBytes.size()]};
}

Plan DecodePlan(std::span<const uint8_t> bytes) {
  Plan plan;
  plan.header = FromBytes<PlanHeader>(bytes);
  bytes = bytes.subspan(std::min(bytes.size(), kPlanHeaderBytes));
  while (!bytes.empty() && plan.ops.size() < kMaxPlanOps) {
    PlanOp op = FromBytes<PlanOp>(bytes);
    op.kind = static_cast<OpKind>(static_cast<uint8_t>(op.kind) % kOpKinds);
    plan.ops.push_back(op);
    bytes = bytes.subspan(std::min(bytes.size(), kPlanOpBytes));
  }
  return plan;
}

std::vector<uint8_t> EncodePlan(const Plan& plan) {
  std::vector<uint8_t> bytes;
  bytes.reserve(kPlanHeaderBytes + plan.ops.size() * kPlanOpBytes);
  AppendBytes(plan.header, bytes);
  for (const PlanOp& op : plan.ops) AppendBytes(op, bytes);
  return bytes;
}

std::string PlanToString(const Plan& plan) {
  const StagerOptions options = plan.header.stager_options();
  std::string text =
      std::to_string(plan.ops.size()) + " operations of " +
      std::to_string(plan.header.task_count()) + " tasks on " +
      std::to_string(plan.header.stream_count()) + " streams, " +
      std::to_string(plan.header.mirror_count()) + " mirrors; slots " +
      std::to_string(options.initial_slots) + " to " + std::to_string(options.max_slots) + " of " +
      std::to_string(options.slot_bytes) + " B within " + std::to_string(options.max_pinned_bytes) +
      " B; adversaries " + std::to_string(plan.header.adversary_bits()) + "\n";
  for (size_t i = 0; i < plan.ops.size(); ++i) {
    text += "  " + std::to_string(i) + ": " + OpToString(plan.ops[i], plan.header) + "\n";
  }
  return text;
}

std::string PlanToToken(std::span<const uint8_t> bytes) {
  return std::string(kTokenPrefix) + EncodeBase64Url(bytes);
}

std::optional<std::vector<uint8_t>> PlanFromToken(std::string_view token) {
  if (!token.starts_with(kTokenPrefix)) return std::nullopt;
  return DecodeBase64Url(token.substr(kTokenPrefix.size()));
}

}  // namespace h2d::testing
