// The table that a run ends with.
#ifndef H2D_EXAMPLES_REPLAY_REPORT_H_
#define H2D_EXAMPLES_REPLAY_REPORT_H_

#include <span>
#include <string>
#include <string_view>

#include "h2d/examples/replay/replay.h"
#include "h2d/examples/replay/trace.h"

namespace h2d::replay {

// One column of the table.
struct ReportColumn {
  std::string_view title;
  const ReplayResult* result = nullptr;
};

// The figures of one run, or of several on one kind of machine side by side.
std::string ReportTable(std::span<const ReportColumn> columns);

// A line for each of the first requests that can never fit, and how many there are beyond them;
// empty when there is none.
std::string NeverFitText(std::span<const TraceRequest> trace, const SchedulerOptions& options,
                         std::span<const uint32_t> never_fit);

}  // namespace h2d::replay

#endif  // H2D_EXAMPLES_REPLAY_REPORT_H_
