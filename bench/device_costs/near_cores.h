// Which cores lie near the GPU, where the machine does not say.
#ifndef H2D_BENCH_DEVICE_COSTS_NEAR_CORES_H_
#define H2D_BENCH_DEVICE_COSTS_NEAR_CORES_H_

#include <cstdint>
#include <functional>

namespace h2d::bench {

// Keeps this process to the cores on which `call` is fast, and prints them. A virtual machine may
// show one node where there are two: from the cores of the far one every call of the driver
// took 1.6 times as long on an H200 host, and a table made half here, half there compares nothing.
void KeepToNearCores(const std::function<void(uint64_t n)>& call);

}  // namespace h2d::bench

#endif  // H2D_BENCH_DEVICE_COSTS_NEAR_CORES_H_
