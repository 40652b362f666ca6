// A run as text: a line for each call and each completion, a column for each lane.
#ifndef H2D_DEVICE_FAKE_VIEW_TIMELINE_H_
#define H2D_DEVICE_FAKE_VIEW_TIMELINE_H_

#include <cstddef>
#include <span>
#include <string>

#include "h2d/device/fake/hazard.h"
#include "h2d/device/fake/internal/operation_info.h"
#include "h2d/device/fake/internal/trace.h"

namespace h2d::fake_internal {

// No narrower: the text beside the lanes would be a word a line.
inline constexpr size_t kMinTimelineColumns = 60;

// The lanes that took part, each a column; an operation's life on a stream is drawn from its call
// ("+12") over the time that it is in flight ("|") to its completion ("*12"). Operations that are
// part of a hazard are marked "!" and drawn as "#" while in flight; where the second of them is
// called, a line leads from the lane of the first ("o") to that of the second ("x") and says what
// should have been there. The hazards follow in full.
//
// Lines are at most `columns` long. Lanes that do not fit are left out, those of hazards last; of
// long runs the rows around the first hazard are shown, or the newest. Both say so.
std::string RenderTimeline(const Trace& trace, const Names& names, std::span<const Hazard> hazards,
                           size_t columns);

}  // namespace h2d::fake_internal

#endif  // H2D_DEVICE_FAKE_VIEW_TIMELINE_H_
