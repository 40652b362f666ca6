// What plans did of which no branch of the library can tell.
//
// The library's own marks (stager/internal/state_mark.h) say which of its branches ran. These name
// what the callers did around them; random plans must have done each as well.
#ifndef H2D_TESTS_SUPPORT_PLAN_MARK_H_
#define H2D_TESTS_SUPPORT_PLAN_MARK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace h2d::testing {

enum class PlanMark : uint8_t {
  kStepAcrossStreams,   // a step travelled on another stream than the one before
  kStepAfterFailure,    // a step that had failed was sent by a later submit
  kStepRefused,         // a step met a capturing stream
  kStepWouldBlock,      // a step found no slot and did not wait
  kFieldForgotten,      // a field was forgotten between its write and its submit
  kDeviceFieldKept,     // a step travelled around a field that a kernel had written
  kFieldEdited,         // a field was edited in place
  kRowAppended,         // a row got more values
  kRowShortened,        // a row got fewer values than it had, and padding behind them
  kRowCopied,           // a row became what another is
  kRowMoved,            // ... which was cleared
  kRowsSwapped,         // two rows were exchanged
  kStepRemade,          // a writer was made anew while its last copy may have run
  kBatchRefused,        // a batch met a capturing stream
  kBatchWouldBlock,     // a batch found no slot and did not wait
  kBatchOverMirror,     // a batch wrote a mirrored range without its mirror
  kBatchHitBesideCopy,  // of a batch some copies were hits and others travelled
  kBatchOverlapped,     // a batch and another call used one mirror at the same time
  kBatchAfterFailure,   // a batch through mirrors that an earlier one had failed for
  kCount,
};
inline constexpr size_t kPlanMarkCount = static_cast<size_t>(PlanMark::kCount);

constexpr std::string_view Name(PlanMark mark) noexcept {
  constexpr std::array<std::string_view, kPlanMarkCount> kNames = {
      "step on another stream",
      "step sent after a failure",
      "step refused by a capture",
      "step would block",
      "field forgotten before it was sent",
      "field of the device kept",
      "field edited in place",
      "row appended to",
      "row shortened and padded",
      "row copied",
      "row moved",
      "rows swapped",
      "step's writer remade",
      "batch refused by a capture",
      "batch would block",
      "batch over a mirrored range",
      "batch of hits and copies",
      "batch beside another call",
      "batch sent after a failure",
  };
  return kNames[static_cast<size_t>(mark)];
}

}  // namespace h2d::testing

#endif  // H2D_TESTS_SUPPORT_PLAN_MARK_H_
