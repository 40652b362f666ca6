// Finds a race in code that sends values to a device: random plans on a simulated device, the first
// one that fails made as small as it can be.
#ifndef H2D_EXAMPLES_FIND_THE_RACE_SEARCH_H_
#define H2D_EXAMPLES_FIND_THE_RACE_SEARCH_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "h2d/device/fake/fake_device.h"

// The code under test: sends values to a destination on a stream.
using Send = std::function<h2d::Expected<void>(std::span<const std::byte>, h2d::DevicePtr,
                                               const h2d::Stream&)>;
using MakeSend = std::function<h2d::Expected<Send>(const std::shared_ptr<h2d::FakeDevice>&)>;

// One call of the code under test.
struct Step {
  uint64_t id = 0;      // whose choices the device draws, whatever became of the other steps
  uint64_t stream = 0;  // 0 or 1
};

// What a run does, and everything that the device decides in it: the same plan is the same run.
struct Plan {
  std::vector<Step> steps;
  std::map<h2d::ChoicePoint, uint32_t> choices;  // those that are not the kindest
};

struct Finding {
  uint64_t plans = 0;  // tried until one failed
  Plan found;
  Plan minimal;
  std::shared_ptr<h2d::FakeDevice> device;  // as the minimal plan left it
};

// Nothing when `max_plans` plans run without a hazard. An error of the code under test counts as
// the end of a run.
std::optional<Finding> FindRace(const MakeSend& make_send, uint64_t max_plans);

std::string ToString(const Plan& plan);

#endif  // H2D_EXAMPLES_FIND_THE_RACE_SEARCH_H_
