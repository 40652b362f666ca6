// The faults that people build into stagers, each once.
#ifndef H2D_TESTS_WRONG_STAGERS_FLAW_H_
#define H2D_TESTS_WRONG_STAGERS_FLAW_H_

#include <array>
#include <cstdint>
#include <string_view>

namespace h2d::testing {

enum class Flaw : uint8_t {
  kNone,                   // the little stager is right
  kNoWait,                 // a full ring takes its oldest slot anyway
  kRecordBeforeCopy,       // the event is recorded before the copy that it should guard
  kOneEventForTwoSlots,    // two slots share an event, which two streams record
  kFreedAtEnqueue,         // a slot is free as soon as its copy was enqueued
  kFreesWhatWasListed,     // a completed event frees what was taken before it, not enqueued before
  kErrorIsCompletion,      // a query that fails counts as a completion
  kKeptAfterFailure,       // the mirror believes in a copy that failed
  kSkipWithoutWait,        // a skip on another stream is not ordered after the last copy
  kTrimWithoutWait,        // nor a trimmed copy
  kCopyWithoutWait,        // nor a full one
  kForgetsOrder,           // forgetting the content forgets the last copy too
  kFailureForgetsOrder,    // a failed copy is not taken for a possible writer
  kWaitsForRecycledSlot,   // waits for the last copy's slot, which may serve another by then
  kHandleIsIdentity,       // streams are told apart by handles, which are used again
  kOverlappingMirrors,     // two mirrors may share bytes
  kPlainCopyUnseen,        // a plain copy into a mirrored range leaves the mirror as it was
  kZeroesAreEqual,         // 0.0 and -0.0 compare equal
  kNansDiffer,             // equal NaNs do not
  kPaddingUnseen,          // only the values are compared
  kTrimsOverUnknownBytes,  // a trimmed copy leaves out bytes that the mirror does not know
  kCapturesUnseen,         // a capturing stream is used like any other
  kFreesInUse,             // the destructor frees what copies still read
  kFillsAfterEnqueue,      // the slot is filled when its copy was enqueued already
  kSendsOneTooMany,        // a copy is a byte longer than its image
  kTwoCopies,              // an image is sent in two copies
  kTryWaits,               // a call that may not wait does
  kRebindKeepsContent,     // a mirror believes in its content at another place
};
inline constexpr uint32_t kFlaws = 28;

constexpr std::string_view ToString(Flaw flaw) noexcept {
  constexpr std::array<std::string_view, kFlaws> kNames = {"none",
                                                           "no wait",
                                                           "event recorded before the copy",
                                                           "one event for two slots",
                                                           "slot freed at enqueue",
                                                           "an event frees what was listed",
                                                           "an error is a completion",
                                                           "mirror kept after a failed copy",
                                                           "skip without a wait",
                                                           "trim without a wait",
                                                           "full copy without a wait",
                                                           "forgetting drops order",
                                                           "failing drops order",
                                                           "wait for a recycled slot",
                                                           "a handle is an identity",
                                                           "overlapping mirrors",
                                                           "plain copy unseen by its mirror",
                                                           "0.0 equals -0.0",
                                                           "a NaN differs from itself",
                                                           "padding is not compared",
                                                           "trim over unknown bytes",
                                                           "captures unseen",
                                                           "freed while in use",
                                                           "slot filled after the enqueue",
                                                           "a byte too many",
                                                           "two copies for one",
                                                           "a try that waits",
                                                           "content kept at a rebind"};
  return kNames[static_cast<size_t>(flaw) % kFlaws];
}

}  // namespace h2d::testing

#endif  // H2D_TESTS_WRONG_STAGERS_FLAW_H_
