// The ring of the little stager: a fixed number of slots, each with an event.
#ifndef H2D_TESTS_WRONG_STAGERS_LITTLE_RING_H_
#define H2D_TESTS_WRONG_STAGERS_LITTLE_RING_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "h2d/device/device.h"
#include "h2d/device/sync.h"
#include "h2d/stager/stager_options.h"
#include "h2d/tests/wrong_stagers/flaw.h"

namespace h2d::testing {

// A copy that was enqueued: still that one while the slot's generation is the same.
struct Origin {
  size_t slot = 0;
  uint64_t generation = 0;  // 0: there is none
  StreamId stream = 0;
  void* handle = nullptr;
  bool unknown = false;  // it has no event
};

// Right but for its flaw; nothing more than that is asked of it. It polls, never grows, and loses
// the slots of failed calls for good.
class LittleRing {
 public:
  static constexpr uint64_t kSlotBytes = 1024;

  static Expected<std::shared_ptr<LittleRing>> Create(std::shared_ptr<Device> device,
                                                      const StagerOptions& options, Flaw flaw);
  ~LittleRing();

  // Nothing when none is free and the caller does not wait.
  Expected<std::optional<size_t>> Take(bool wait);
  std::span<std::byte> BytesOf(size_t slot, uint64_t bytes) const;
  void GiveBack(size_t slot);

  // Copies (nothing when `bytes` is 0), records, and answers what to wait for.
  Expected<Origin> Enqueue(size_t slot, uint64_t bytes, DevicePtr destination, const Stream& stream,
                           StreamId id);

  Expected<void> MakeStreamWait(const Stream& stream, StreamId id, const Origin& origin);

  Device& device() noexcept { return *device_; }
  Flaw flaw() const noexcept { return flaw_; }

 private:
  struct Slot {
    PinnedBuffer memory;
    Event event;
    bool taken = false;
    bool in_flight = false;
    bool lost = false;  // its record failed: nobody can tell when its copy completes
    StreamId stream = 0;
    uint64_t generation = 1;
    uint64_t listed = 0;
  };

  LittleRing(std::shared_ptr<Device> device, const StagerOptions& options, Flaw flaw)
      : device_(std::move(device)), options_(options), flaw_(flaw) {}

  std::optional<size_t> TakeFree();
  void Sweep();
  void Free(Slot& slot);
  Event& EventOf(size_t slot);

  std::shared_ptr<Device> device_;
  const StagerOptions options_;
  const Flaw flaw_;
  Mutex mutex_;
  std::vector<Slot> slots_;
  uint64_t listed_ = 0;
};

}  // namespace h2d::testing

#endif  // H2D_TESTS_WRONG_STAGERS_LITTLE_RING_H_
