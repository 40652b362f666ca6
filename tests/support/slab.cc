#include "h2d/tests/support/slab.h"

namespace h2d::testing {

Expected<StepFields> StepFields::Make() {
  StepLayout::Builder builder;
  const auto tokens = builder.Add<int32_t>("tokens", 6, {.pad = -1});
  const auto tables = builder.AddRows<int16_t>("tables", 3, 5, {.pad = int16_t{0}});
  const auto state = builder.Add<int32_t>("state", 2, {.device_written = true});
  const auto scales = builder.Add<float>("scales", 4);
  Expected<StepLayout> layout = std::move(builder).Build();
  if (!layout) return ErrorOf(layout);
  return StepFields{*std::move(layout), tokens, tables, state, scales};
}

}  // namespace h2d::testing
