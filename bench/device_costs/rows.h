// The parts of the table that `device_costs` prints.
#ifndef H2D_BENCH_DEVICE_COSTS_ROWS_H_
#define H2D_BENCH_DEVICE_COSTS_ROWS_H_

#include "h2d/bench/device_costs/setting.h"

namespace h2d::bench {

// `Copy` beside the raw calls, in rings of several sizes, and what people use instead.
void CompareCopies(Setting& setting);

// A step of 16 tensors: packed by a writer, in a batch, one by one.
void CompareSteps(Setting& setting);

// Two threads on two streams beside one thread.
void CompareThreadScaling(Setting& setting);

}  // namespace h2d::bench

#endif  // H2D_BENCH_DEVICE_COSTS_ROWS_H_
