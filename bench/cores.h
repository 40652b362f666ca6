// On which cores the calling thread runs.
#ifndef H2D_BENCH_CORES_H_
#define H2D_BENCH_CORES_H_

#include <functional>
#include <vector>

namespace h2d::bench {

// The cores that the calling thread may use; none where the system does not say.
std::vector<int> AllowedCores();

// Keeps the calling thread, and threads that it starts, to `cores`; where that is not allowed, or
// there are none, nothing changes.
void KeepTo(const std::vector<int>& cores);

// Those of `cores` on which `seconds`, which is called on each, answers at most a quarter more than
// on the fastest. A virtual machine may show one node where there are two, and from the far one a
// driver's calls take 1.6 times as long (measured on an H200 host).
std::vector<int> NearCores(const std::vector<int>& cores, const std::function<double()>& seconds);

}  // namespace h2d::bench

#endif  // H2D_BENCH_CORES_H_
