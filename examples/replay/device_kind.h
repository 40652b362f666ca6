// Which machine a run takes.
#ifndef H2D_EXAMPLES_REPLAY_DEVICE_KIND_H_
#define H2D_EXAMPLES_REPLAY_DEVICE_KIND_H_

#include <cstdint>

namespace h2d::replay {

enum class DeviceKind : uint8_t {
  kFake,  // the simulated device
  kHost,  // host memory
  kCuda,  // a GPU
};

}  // namespace h2d::replay

#endif  // H2D_EXAMPLES_REPLAY_DEVICE_KIND_H_
