// Eight operating-system threads on one stager, each checking what it copied.
#ifndef H2D_TESTS_STRESS_SHARED_STAGER_H_
#define H2D_TESTS_STRESS_SHARED_STAGER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "h2d/device/device.h"
#include "h2d/device/device_ptr.h"

namespace h2d::testing {

inline constexpr int kStressThreads = 8;

// What the threads need of a device besides copying. Thread-safe.
struct StressDevice {
  std::shared_ptr<Device> device;
  // A stream, and memory for `count` values.
  std::function<Stream()> new_stream;
  std::function<DevicePtr(uint64_t count)> allocate;
  // The values at an address, after everything that the stream has been given.
  std::function<std::vector<uint32_t>(DevicePtr, uint64_t count, const Stream&)> read;
};

// Each thread copies to a destination of its own, plainly, through a mirror and in place, and to
// one that all share; between rounds each reads back what it must find. Answers what went wrong;
// empty when nothing did.
std::string RunSharedStager(const StressDevice& stress, int rounds);

}  // namespace h2d::testing

#endif  // H2D_TESTS_STRESS_SHARED_STAGER_H_
