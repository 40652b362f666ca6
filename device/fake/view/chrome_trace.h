// A run as JSON in Chrome's trace event format, which Perfetto opens.
#ifndef H2D_DEVICE_FAKE_VIEW_CHROME_TRACE_H_
#define H2D_DEVICE_FAKE_VIEW_CHROME_TRACE_H_

#include <span>
#include <string>

#include "h2d/device/fake/hazard.h"
#include "h2d/device/fake/internal/operation_info.h"
#include "h2d/device/fake/internal/trace.h"

namespace h2d::fake_internal {

// Process 1 holds a thread for each host lane, with a slice for each call; process 2 one for each
// stream, with a slice for each operation from the time that it is the stream's oldest to its
// completion (or to the end of the run). Flow arrows lead from calls to operations ("enqueue") and
// from the first access of a hazard to the second ("missing edge"); each access is an instant event
// as well, with the hazard's words.
std::string RenderChromeTrace(const Trace& trace, const Names& names,
                              std::span<const Hazard> hazards);

}  // namespace h2d::fake_internal

#endif  // H2D_DEVICE_FAKE_VIEW_CHROME_TRACE_H_
