// The fixture of the suite's tests.
#ifndef H2D_DEVICE_CONFORMANCE_CONFORMANCE_TEST_H_
#define H2D_DEVICE_CONFORMANCE_CONFORMANCE_TEST_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "h2d/device/conformance/harness.h"
#include "h2d/device/device.h"

namespace h2d::conformance {

// Unpacks an answer that has to be a success. Throws otherwise: GoogleTest makes that the test's
// failure, and the fixture still cleans up. For the test's own thread only.
template <class T>
T Must(Expected<T> answer) {
  if (!answer) throw std::runtime_error(answer.error().ToString());
  if constexpr (!std::is_void_v<T>) return *std::move(answer);
}

// The code of an answer that has to be an error.
template <class T>
ErrorCode CodeOf(const Expected<T>& answer) {
  if (answer) throw std::runtime_error("the call succeeded and should have failed");
  return answer.error().code;
}

// `bytes` bytes that tell their place and `seed`.
std::vector<std::byte> Pattern(uint64_t bytes, uint32_t seed);

class ConformanceTest : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  Harness& harness() { return *harness_; }
  Device& device() { return *harness_->device(); }
  // The second device's harness. Throws where there is none, as `Must` does.
  Harness& second() {
    if (harness_->Second() == nullptr) throw std::runtime_error("there is no second device");
    return *harness_->Second();
  }

  Stream NewStream(StreamFlavor flavor = StreamFlavor::kNonBlocking) {
    return Must(harness().NewStream(flavor));
  }
  Stream NewHeldStream(StreamFlavor flavor = StreamFlavor::kNonBlocking);
  DevicePtr NewMemory(uint64_t bytes) { return Must(harness().AllocateDevice(bytes)); }
  // Pinned memory that holds `values`. It lives until no copy of the test is in flight.
  const PinnedBuffer& NewPinned(std::span<const std::byte> values);
  // Writes `values` into `buffer`, announced as the library announces its own writes.
  void Write(const PinnedBuffer& buffer, std::span<const std::byte> values);
  Event NewEvent() { return Must(device().CreateEvent()); }
  // An event that stands for what `stream` holds now.
  Event RecordOn(const Stream& stream);

  // The same behind a copy of its own, for what only work obeys.
  Event CopyOn(const Stream& stream);

  // Waits until `event` is complete, a few seconds at most.
  void Await(const Event& event);
  // Looks once. "Pending" proves nothing by itself on a device that is merely slow, so tests look
  // after later work on another stream is complete (`RunAround`).
  bool IsPending(const Event& event) { return Must(device().Query(event)) == EventState::kPending; }
  // Carries a copy on a fresh stream from start to end: what was not held would be done by then.
  void RunAround();

  std::vector<std::byte> ReadBack(DevicePtr ptr, uint64_t bytes, const Stream& stream) {
    return Must(harness().ReadBack(ptr, bytes, stream));
  }

 private:
  std::unique_ptr<Harness> harness_;
  std::deque<PinnedBuffer> pinned_;
};

}  // namespace h2d::conformance

#endif  // H2D_DEVICE_CONFORMANCE_CONFORMANCE_TEST_H_
