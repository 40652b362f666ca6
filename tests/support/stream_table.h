// The streams of a plan, and who uses them: a stream is captured, destroyed or made anew only while
// no call uses it, as the library requires of its callers.
#ifndef H2D_TESTS_SUPPORT_STREAM_TABLE_H_
#define H2D_TESTS_SUPPORT_STREAM_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "h2d/device/stream.h"

namespace h2d::testing {

struct StreamSlot {
  std::optional<Stream> stream = {};
  uint64_t generation = 0;  // grows when the stream is made anew
  int users = 0;
  bool closed = false;  // somebody captures or remakes it
  bool held = false;
  bool capturing = false;
  size_t capture_task = 0;
};

// Tasks run one at a time and switch only inside calls of the device or of a lock: plain members
// are enough.
class StreamTable {
 public:
  std::vector<StreamSlot>& slots() noexcept { return slots_; }
  StreamSlot& At(size_t index) noexcept { return slots_[index % slots_.size()]; }

 private:
  std::vector<StreamSlot> slots_;
};

// Uses a stream for a scope, together with others; false when it is closed.
class StreamUse {
 public:
  explicit StreamUse(StreamSlot& slot) noexcept : slot_(slot.closed ? nullptr : &slot) {
    if (slot_ != nullptr) ++slot_->users;
  }
  ~StreamUse() {
    if (slot_ != nullptr) --slot_->users;
  }
  StreamUse(const StreamUse&) = delete;
  StreamUse& operator=(const StreamUse&) = delete;

  explicit operator bool() const noexcept { return slot_ != nullptr; }
  StreamSlot& slot() const noexcept { return *slot_; }
  const Stream& stream() const noexcept { return *slot_->stream; }

 private:
  StreamSlot* slot_;
};

// Has a stream for itself for a scope; false when it is in use.
class StreamAlone {
 public:
  explicit StreamAlone(StreamSlot& slot) noexcept
      : slot_(slot.closed || slot.users != 0 ? nullptr : &slot) {
    if (slot_ != nullptr) slot_->closed = true;
  }
  ~StreamAlone() {
    if (slot_ != nullptr) slot_->closed = false;
  }
  StreamAlone(const StreamAlone&) = delete;
  StreamAlone& operator=(const StreamAlone&) = delete;

  explicit operator bool() const noexcept { return slot_ != nullptr; }
  StreamSlot& slot() const noexcept { return *slot_; }

 private:
  StreamSlot* slot_;
};

}  // namespace h2d::testing

#endif  // H2D_TESTS_SUPPORT_STREAM_TABLE_H_
