// Host tasks whose order an exploration picks.
#ifndef H2D_DEVICE_FAKE_EXPLORE_WATCHED_TASKS_H_
#define H2D_DEVICE_FAKE_EXPLORE_WATCHED_TASKS_H_

#include <functional>
#include <vector>

#include "h2d/device/error.h"
#include "h2d/device/fake/explore/exploration.h"
#include "h2d/device/fake/fake_device.h"

namespace h2d {

// `RunTasks` of host_tasks.h, which also tells `exploration` which locks and atomics each step
// touches. The choices of `device` are an `ExploredChoices` of `exploration`.
[[nodiscard]] Expected<void> RunWatchedTasks(FakeDevice& device, Exploration& exploration,
                                             std::vector<std::function<void()>> tasks);

}  // namespace h2d

#endif  // H2D_DEVICE_FAKE_EXPLORE_WATCHED_TASKS_H_
