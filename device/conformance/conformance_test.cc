#include "h2d/device/conformance/conformance_test.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "h2d/device/conformance/run.h"

namespace h2d::conformance {

std::vector<std::byte> Pattern(uint64_t bytes, uint32_t seed) {
  std::vector<std::byte> pattern(bytes);
  uint32_t state = seed * 2654435761U + 1;
  for (std::byte& byte : pattern) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<std::byte>(state >> 24);
  }
  return pattern;
}

void ConformanceTest::SetUp() { harness_ = Must(BackendUnderTest().make_harness()); }

void ConformanceTest::TearDown() {
  if (harness_ == nullptr) return;
  harness_->Quiesce();
  pinned_.clear();
  EXPECT_EQ(harness_->Complaints(), "");
  harness_.reset();
}

Event ConformanceTest::RecordOn(const Stream& stream) {
  Event event = NewEvent();
  Must(device().Record(event, stream));
  return event;
}

Event ConformanceTest::CopyOn(const Stream& stream) {
  Must(device().CopyAsync(NewMemory(64), NewPinned(Pattern(64, 1)).bytes(), stream));
  return RecordOn(stream);
}

Stream ConformanceTest::NewHeldStream(StreamFlavor flavor) {
  const Stream stream = NewStream(flavor);
  Must(harness().Hold(stream));
  return stream;
}

const PinnedBuffer& ConformanceTest::NewPinned(std::span<const std::byte> values) {
  pinned_.push_back(Must(device().AllocatePinned(values.size())));
  Write(pinned_.back(), values);
  return pinned_.back();
}

void ConformanceTest::Write(const PinnedBuffer& buffer, std::span<const std::byte> values) {
  device().OnHostAccess(buffer.bytes().first(values.size()), HostAccess::kWrite);
  std::ranges::copy(values, buffer.bytes().begin());
}

void ConformanceTest::Await(const Event& event) {
  const Event* const only = &event;
  const std::optional<size_t> complete =
      Must(device().WaitAny(std::span(&only, 1), WaitBounds{.timeout = std::chrono::seconds(20)}));
  if (!complete) throw std::runtime_error("an event that should complete did not");
}

void ConformanceTest::RunAround() { Await(CopyOn(NewStream())); }

}  // namespace h2d::conformance
