// Options to try, one changed at a time.
#ifndef H2D_BENCH_CALIBRATE_VARIANTS_H_
#define H2D_BENCH_CALIBRATE_VARIANTS_H_

#include <string>
#include <vector>

#include "h2d/stager/uploader_options.h"

namespace h2d::calibrate {

struct Variant {
  std::string name;
  UploaderOptions options;
};

// `base` itself, then `base` with one option at another value each.
std::vector<Variant> VariantsOf(const UploaderOptions& base);

}  // namespace h2d::calibrate

#endif  // H2D_BENCH_CALIBRATE_VARIANTS_H_
