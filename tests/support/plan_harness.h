// The seam between a plan and the device that it runs on: what the callers of the library do.
#ifndef H2D_TESTS_SUPPORT_PLAN_HARNESS_H_
#define H2D_TESTS_SUPPORT_PLAN_HARNESS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "h2d/device/device.h"
#include "h2d/device/faulty/fault.h"
#include "h2d/tests/support/region_model.h"

namespace h2d::testing {

class PlanHarness {
 public:
  virtual ~PlanHarness() = default;

  // What the library under test gets, faults included.
  virtual std::shared_ptr<Device> device() = 0;
  // What the callers use for their own events and waits: never fails on purpose.
  virtual Device& callers_device() = 0;

  // Device memory that holds `initial`, for the life of the harness.
  virtual Expected<DevicePtr> Allocate(const Bytes& initial, std::string_view name) = 0;

  virtual Expected<Stream> NewStream(std::string_view name) = 0;
  virtual Stream LegacyStream() = 0;
  virtual Expected<void> DestroyStream(const Stream& stream) = 0;
  // False when this device's streams cannot be held now.
  virtual bool CanHold() const = 0;
  virtual Expected<void> Hold(const Stream& stream) = 0;
  virtual Expected<void> Release(const Stream& stream) = 0;
  virtual Expected<void> CompleteNext(const Stream& stream) = 0;
  virtual void Advance(std::chrono::nanoseconds duration) = 0;
  // Waits until nothing runs any more; answers how many operations are left.
  virtual size_t Finish() = 0;

  // `mode` modulo the number of capture modes.
  virtual Expected<void> BeginCapture(const Stream& stream, uint32_t mode) = 0;
  // Answers how many operations were recorded.
  virtual Expected<size_t> EndCapture(const Stream& stream) = 0;

  // Kernels of the callers: in stream order, one reads `bytes` bytes into `into`, one writes.
  // `into` is filled in by the time of `Finish`.
  virtual Expected<void> LaunchRead(const Stream& stream, DevicePtr from, size_t bytes,
                                    std::shared_ptr<Bytes> into) = 0;
  virtual Expected<void> LaunchWrite(const Stream& stream, DevicePtr to, Bytes bytes) = 0;

  // The library's calls fail as `fault` says, its `call` counted from now (1: the next).
  virtual void ArmFault(Fault fault) = 0;
  virtual void DisarmFaults() = 0;
  virtual uint64_t faults_fired() const = 0;

  // Host code of several callers, interleaved.
  virtual Expected<void> RunTasks(std::vector<std::function<void()>> tasks) = 0;
  // Lets the other tasks run on.
  virtual void Yield() = 0;
  // The choices that follow, of the calling task, belong to operation `index` of the plan.
  virtual void BeginOperation(size_t index) = 0;
  // From now on the device is kind.
  virtual void Calm() = 0;

  // Races that were seen, as text; empty when there were none.
  virtual std::string Hazards() const = 0;
  // Pinned memory that is owned by somebody now, in bytes.
  virtual uint64_t PinnedBytesOwned() const = 0;
  virtual std::string Timeline() const = 0;
  virtual uint64_t TraceHash() const = 0;
};

}  // namespace h2d::testing

#endif  // H2D_TESTS_SUPPORT_PLAN_HARNESS_H_
