#include "h2d/examples/replay/machine_factory.h"

#include "h2d/examples/replay/cuda_machine.h"
#include "h2d/examples/replay/fake_machine.h"
#include "h2d/examples/replay/host_machine.h"

namespace h2d::replay {

Expected<std::unique_ptr<Machine>> NewMachine(DeviceKind kind, uint64_t seed) {
  switch (kind) {
    case DeviceKind::kFake:
      return NewFakeMachine(seed);
    case DeviceKind::kHost:
      return NewHostMachine();
    case DeviceKind::kCuda:
      return NewCudaMachine();
  }
  return InvalidArgument("There is no such kind of device.");
}

}  // namespace h2d::replay
