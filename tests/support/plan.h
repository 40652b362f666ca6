// A plan: what the host tasks of one random run do, and what the simulated device chooses
// meanwhile.
//
// A plan is bytes: a header of `kPlanHeaderBytes`, then records of `kPlanOpBytes`, one an
// operation. Every byte string is a valid plan (a missing tail counts as zeros), so the same bytes
// serve rapidcheck, a fuzzer and a replay from a token. Each operation carries its own choice
// bytes: removing an operation moves no other's choices, and bytes that shrink to zero shrink
// towards the simplest operation and the kindest device.
#ifndef H2D_TESTS_SUPPORT_PLAN_H_
#define H2D_TESTS_SUPPORT_PLAN_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "h2d/stager/stager_options.h"
#include "h2d/stager/step_writer_options.h"

namespace h2d::testing {

inline constexpr size_t kPlanHeaderBytes = 16;
inline constexpr size_t kPlanOpBytes = 16;
// Longer byte strings are cut: it bounds what one plan may cost.
inline constexpr size_t kMaxPlanOps = 200;

// What one operation does. The first is what everything shrinks to.
enum class OpKind : uint8_t {
  kCopy,          // plain copy to a destination of its own
  kMirroredCopy,  // copy through a mirror
  kRead,          // a kernel ordered after the last write snapshots a destination
  kAcquire,       // take a slot and write it
  kSubmit,        // submit a slot that this task holds, plain or through a mirror
  kDrop,          // drop a slot that this task holds
  kInvalidate,    // forget what a mirror knows
  kMatches,       // ask what a mirror knows
  kForeignWrite,  // a kernel writes a destination; its mirror is told to forget
  kRecord,        // a kernel writes a destination; its mirror is told what
  kRebind,        // a mirror moves to its other buffer
  kRemakeMirror,  // a mirror is destroyed and made anew
  kHold,          // a stream carries out nothing
  kRelease,       // until it is released
  kCompleteNext,  // a held stream carries out one operation
  kAdvance,       // virtual time passes
  kBeginCapture,  // a stream is captured: every copy on it must be refused
  kEndCapture,    // and the capture must still be valid
  kRemakeStream,  // a busy stream is destroyed; the next one gets its handle
  kFault,         // the device fails a later call of the library
  kBadCall,       // a call that must be refused and change nothing
  kSetField,      // a field of a step is written
  kEditRows,      // a row of a step's table is set, appended to, cleared, copied, moved, swapped
  kSubmitStep,    // what changed of a step is sent
  kForgetField,   // a step forgets a field or all of them, or is asked what it knows
  kReadSlab,      // a kernel snapshots a step's slab
  kGraphWrite,    // a kernel writes a field of a step's slab
  kPlainToSlab,   // plain copy into a step's slab
  kRemakeStep,    // a step's writer is destroyed and made anew
  kBatch,         // copies to several destinations together, plain and through mirrors
  kBadStepCall,   // a call with steps or batches that must be refused and change nothing
};
inline constexpr uint32_t kOpKinds = 31;

// From here on operations of steps and batches, which a stager may lack.
inline constexpr OpKind kFirstStepOp = OpKind::kSetField;

std::string_view ToString(OpKind kind) noexcept;

// How a copy's values come from those that its destination was last sent.
enum class Edit : uint8_t {
  kSame,      // the same values
  kOne,       // one element differs
  kSpan,      // a run of elements differs
  kBothEnds,  // the first and the last element differ
  kFlipZero,  // 0.0 becomes -0.0 and the other way round
  kNan,       // NaNs of equal or different payload
  kShrink,    // fewer values: with padding, the tail becomes padding
  kGrow,      // more values
  kFresh,     // all differ
};
inline constexpr uint32_t kEdits = 9;

std::string_view ToString(Edit edit) noexcept;

// One operation, as it is encoded: one byte a field, in this order. Fields select modulo what there
// is to select from, so every value means something.
struct PlanOp {
  OpKind kind = OpKind::kCopy;
  uint8_t task = 0;
  uint8_t stream = 0;
  uint8_t target = 0;    // which destination, mirror or kind of fault
  uint8_t variant = 0;   // bits that refine the kind
  uint8_t length = 0;    // elements, or an amount
  uint8_t edit = 0;      // see `Edit`
  uint8_t position = 0;  // where the edit begins
  uint8_t span = 0;      // how far it reaches
  uint8_t value = 0;     // what new elements are made from
  uint8_t pad = 0;       // a multiple of 3: no padding; else what it is made from
  uint8_t extra = 0;
  std::array<uint8_t, 4> choices = {};  // see `PlanChoices`

  Edit edit_kind() const noexcept { return static_cast<Edit>(edit % kEdits); }
  // Bit `index` of `variant`.
  bool flag(uint32_t index) const noexcept { return (variant >> index & 1U) != 0; }

  friend bool operator==(const PlanOp&, const PlanOp&) noexcept = default;
};

// What a whole plan shares, as it is encoded: one byte a field, in this order.
struct PlanHeader {
  std::array<uint8_t, 2> adversaries =
      {};  // one bit for each `ChoiceSite`, least significant first
  uint8_t slot_bytes = 0;
  uint8_t initial_slots = 0;
  uint8_t max_slots = 0;
  uint8_t pinned_limit = 0;
  uint8_t streams = 0;
  uint8_t mirrors = 0;
  uint8_t tasks = 0;
  uint8_t min_trim = 0;
  uint8_t growth_failure = 0;
  uint8_t wait_timeout = 0;
  std::array<uint8_t, 3> reserved = {};
  uint8_t cover_gap = 0;  // see `step_writer_options`

  uint32_t stream_count() const noexcept { return 3 + streams % 3; }
  uint32_t mirror_count() const noexcept { return 1 + mirrors % 4; }
  uint32_t task_count() const noexcept { return 2 + tasks % 2; }
  uint16_t adversary_bits() const noexcept {
    return static_cast<uint16_t>(adversaries[0] | adversaries[1] << 8);
  }
  StagerOptions stager_options() const noexcept;
  StepWriterOptions step_writer_options() const noexcept;

  friend bool operator==(const PlanHeader&, const PlanHeader&) noexcept = default;
};

struct Plan {
  PlanHeader header;
  std::vector<PlanOp> ops;

  friend bool operator==(const Plan&, const Plan&) noexcept = default;
};

Plan DecodePlan(std::span<const uint8_t> bytes);
std::vector<uint8_t> EncodePlan(const Plan& plan);

// One line for the header and one for each operation.
std::string PlanToString(const Plan& plan);

// "h2d1:" and the plan's bytes in base64url: prints on one line, pastes into a shell.
std::string PlanToToken(std::span<const uint8_t> bytes);
// Nothing when `token` is not one.
std::optional<std::vector<uint8_t>> PlanFromToken(std::string_view token);

}  // namespace h2d::testing

#endif  // H2D_TESTS_SUPPORT_PLAN_H_
