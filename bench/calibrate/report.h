// Measurements and what was chosen from them, as text, JSON and a picture.
#ifndef H2D_BENCH_CALIBRATE_REPORT_H_
#define H2D_BENCH_CALIBRATE_REPORT_H_

#include <string>
#include <string_view>
#include <vector>

#include "h2d/bench/calibrate/series.h"
#include "h2d/stager/uploader_options.h"

namespace h2d::calibrate {

// A table of GB/s by size, and the options to paste.
std::string ToText(const std::vector<Series>& series, const UploaderOptions& chosen);

std::string ToJson(std::string_view device, const std::vector<Series>& series,
                   const UploaderOptions& chosen);

// Bandwidth over size, an SVG image: a line for each way that was measured at several sizes.
std::string ToSvg(std::string_view device, const std::vector<Series>& series);

}  // namespace h2d::calibrate

#endif  // H2D_BENCH_CALIBRATE_REPORT_H_
