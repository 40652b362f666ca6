// A run as text: a line for each call and each completion, a column for each lane.
#ifndef H2D_DEVICE_FAKE_VIEW_TIMELINE_H_
#define H2D_DEVICE_FAKE_VIEW_TIMELINE_H_

#include <span>
#include <string>

#include "h2d/device/fake/hazard.h"
#include "h2d/device/fake/internal/operation_info.h"
#include "h2d/device/fake/internal/trace.h"

namespace h2d::fake_internal {

// The lanes that took part, each a column; an operation's life on a stream is drawn from its call
// ("+12") over the time that it is in flight ("|") to its completion ("*12"). Operations that are
// part of a hazard are marked "!", and the hazards follow in full.
std::string RenderTimeline(const Trace& trace, const Names& names, std::span<const Hazard> hazards);

}  // namespace h2d::fake_internal

#endif  // H2D_DEVICE_FAKE_VIEW_TIMELINE_H_
