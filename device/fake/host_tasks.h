// Host threads as deterministic tasks: interleavings of host code become choices.
//
// `RunTasks` runs each function as a task. One task runs at a time; every lock and unlock of an
// `h2d::Mutex`, every ordered access to an `h2d::Atomic` and every call of the device is a point
// where the choice source (`ChoiceSite::kTask`) may let another task run. Locks and atomics carry
// the happens-before edges between tasks, so the device's detector judges them as it judges
// streams. A task that waits (`WaitAny`, `Synchronize`) lets the others run; it wakes when an event
// is complete, its wakeup moved, or its deadline passed in virtual time.
//
// Each task is an OS thread that holds a baton, taken from a small pool: sanitizers see ordinary
// threads with ordinary synchronisation. Code that blocks by other means (std::mutex across a
// scheduling point, sleeping, joining) is not for tasks.
#ifndef H2D_DEVICE_FAKE_HOST_TASKS_H_
#define H2D_DEVICE_FAKE_HOST_TASKS_H_

#include <functional>
#include <vector>

#include "h2d/device/error.h"
#include "h2d/device/fake/fake_device.h"

namespace h2d {

// Runs `tasks` to their ends and returns. What the caller did before happens before all of them;
// what they did happens before the return. The choices come from `device`'s own source.
//
// Errors: all tasks that are left wait for one another (`kFailedPrecondition`; also a `kDeadlock`
// hazard that says who waits for what). Then the waits inside tasks fail; a task blocked on a mutex
// is let through so that every thread ends, and the run proves nothing any more.
[[nodiscard]] Expected<void> RunTasks(FakeDevice& device, std::vector<std::function<void()>> tasks);

}  // namespace h2d

#endif  // H2D_DEVICE_FAKE_HOST_TASKS_H_
