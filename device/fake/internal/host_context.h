// Which lane the calling thread is, and who schedules it.
#ifndef H2D_DEVICE_FAKE_INTERNAL_HOST_CONTEXT_H_
#define H2D_DEVICE_FAKE_INTERNAL_HOST_CONTEXT_H_

#include <cstdint>
#include <functional>
#include <string>

#include "h2d/device/fake/internal/clock.h"
#include "h2d/device/fake/internal/engine.h"

namespace h2d::fake_internal {

class Core;

// Why a waiting task runs again.
enum class WakeReason : uint8_t { kReady, kAdvanceTime, kDeadlock };

// What a task waits for. The functions are called by whoever holds the baton.
struct HostWait {
  std::function<bool()> ready;
  std::function<bool()> can_advance;  // virtual time can pass before its deadline
  bool has_deadline = false;
  std::string what;  // for the deadlock's message
};

// Schedules the host's tasks: implemented by the task runner.
class HostScheduler {
 public:
  virtual void Point() = 0;  // another task may run
  virtual WakeReason Wait(const HostWait& wait) = 0;

 protected:
  ~HostScheduler() = default;
};

// The calling thread, as one device sees it. Threads without one are the device's first host lane.
struct HostContext {
  Core* core = nullptr;
  LaneIndex lane = 0;
  uint64_t thread = 0;  // tells threads apart for per-thread state
  HostScheduler* scheduler = nullptr;

  static HostContext*& Current() noexcept { return current_; }

 private:
  static inline thread_local HostContext* current_ = nullptr;
};

// Set while the calling thread carries out a host function or a kernel of a device.
struct CallbackContext {
  Core* core = nullptr;
  LaneIndex lane = 0;   // the stream's
  bool locked = false;  // a kernel: the device's lock is held
  const Op* op = nullptr;

  static CallbackContext*& Current() noexcept { return current_; }

 private:
  static inline thread_local CallbackContext* current_ = nullptr;
};

}  // namespace h2d::fake_internal

#endif  // H2D_DEVICE_FAKE_INTERNAL_HOST_CONTEXT_H_
