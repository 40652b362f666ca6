#include "h2d/device/fake/host_tasks.h"

#include <utility>

#include "h2d/device/fake/internal/task_runner.h"

namespace h2d {

Expected<void> RunTasks(FakeDevice& device, std::vector<std::function<void()>> tasks) {
  return fake_internal::TaskRunner(device.core()).Run(std::move(tasks));
}

}  // namespace h2d
