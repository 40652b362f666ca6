// Named states that the tests must have reached.
//
// A branch that matters carries a mark; a run of random plans that never reaches one has not tested
// it, and fails. Marks are counted only while enabled: in production one costs a load.
#ifndef H2D_STAGER_INTERNAL_STATE_MARK_H_
#define H2D_STAGER_INTERNAL_STATE_MARK_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace h2d::internal {

enum class Mark : uint8_t {
  kRingFull,              // no slot was free and the ring could not grow
  kWouldBlock,            // ... and the caller did not wait
  kWaitedForSlot,         // ... and the caller waited
  kComparedAnew,          // ... through a mirror, which was compared again after the wait
  kCompletedInBatch,      // one completion freed several slots
  kGrowth,                // a slab was added
  kGrowthUnderPressure,   // ... while copies were in flight
  kGrowthRefused,         // the device gave no more pinned memory
  kGrowthAhead,           // the ring was small for how far the device was behind
  kSlabRetired,           // idle memory of one size made room for another
  kQuarantine,            // a record failed after its copy
  kQuarantineEnded,       // ... and a later record of its stream completed
  kQuarantineRecorded,    // ... or it was recorded once more, because the ring was full
  kFailedCopyGuarded,     // a copy call failed and was guarded as one that may run
  kLeaseDropped,          // a held slot was handed back unused
  kLeaseOutlivedStager,   // ... after its stager was gone
  kCaptureRefused,        // a call found its stream capturing
  kSkip,                  // a mirror hit
  kSkipAcrossStreams,     // ... on another stream than the mirror's last copy
  kTrimFront,             // equal bytes before the difference only
  kTrimBack,              // ... after it only
  kTrimBothEnds,          // ... on both sides
  kPaddingDiffers,        // the difference reached into the padding
  kStreamWait,            // a stream was made to wait for a mirror's last copy
  kStreamWaitedBefore,    // ... which it already did
  kOriginComplete,        // the mirror's last copy was known complete: no wait
  kOriginCovered,         // the last copy had no record; a later one of its stream stood in
  kOriginUnknown,         // ... and there was none: the call was refused
  kForgetInFlight,        // content forgotten while the last copy was in flight
  kForgottenByPlainCopy,  // a plain copy wrote a mirrored range
  kMirrorRecorded,        // the caller's own write became a mirror's last copy
  kRebind,                // a mirror followed its destination
  kStepUnchanged,         // a step whose fields the slab holds took no slot
  kStepCovered,           // changed spans travelled as one, with the equal bytes between them
  kStepSplit,             // ... or apart, because of bytes between them that nobody knows
  kStepApart,             // a step travelled in several spans
  kStepSeparate,          // ... one by one, on the legacy stream
  kStepFoundAnew,         // a step waited for a slot and looked again at what changed
  kStepLogJoined,         // a step's writes were too many to remember one by one
  kStepNotSent,           // a step failed and is still to be sent
  kStepOverwritten,       // a plain copy had written a step's slab
  kBatch,                 // several copies were enqueued together
  kBatchSeparate,         // ... one by one, on the legacy stream
  kBatchComparedAnew,     // ... after a wait for a slot
  kBatchSkipped,          // ... and none had to travel
  kBatchNotSent,          // ... and failed
  kCount,
};

inline constexpr size_t kMarkCount = static_cast<size_t>(Mark::kCount);

// The mark's name, e.g. "ring full".
std::string_view Name(Mark mark) noexcept;

// Process-wide; thread-safe.
void EnableMarks(bool enabled) noexcept;
uint64_t MarkHits(Mark mark) noexcept;
void ResetMarks() noexcept;

inline std::atomic<bool> marks_enabled{false};
void CountMark(Mark mark) noexcept;

inline void Reached(Mark mark) noexcept {
  if (marks_enabled.load(std::memory_order_relaxed)) [[unlikely]]
    CountMark(mark);
}

}  // namespace h2d::internal

#endif  // H2D_STAGER_INTERNAL_STATE_MARK_H_
