// Stagers on the device under test.
#ifndef H2D_DEVICE_CONFORMANCE_STAGER_FIXTURE_H_
#define H2D_DEVICE_CONFORMANCE_STAGER_FIXTURE_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "h2d/device/conformance/capture_fixture.h"
#include "h2d/device/device_ptr.h"
#include "h2d/stager/pinned_stager.h"

namespace h2d::conformance {

// `count` values that tell their place and `seed`.
inline std::vector<int32_t> Values(uint64_t count, int32_t seed) {
  std::vector<int32_t> values(count);
  // Unsigned: a seed of some thousands overflows, and a signed overflow is undefined.
  const uint32_t first = static_cast<uint32_t>(seed) * 1'000'003U;
  for (uint64_t i = 0; i < count; ++i) {
    values[i] = static_cast<int32_t>(first + static_cast<uint32_t>(i));
  }
  return values;
}

// The two sizes of ring pressure: racing copies of 64 B often pass by luck, 40 KB fail.
inline constexpr uint64_t kPressureCounts[] = {16, 10'000};

class StagerFixture : public CaptureFixture {
 protected:
  using Kind = CopyOutcome::Kind;

  void TearDown() override {
    harness().Quiesce();  // a stager waits for its copies, and a failed test may hold a stream
    stagers_.clear();
    CaptureFixture::TearDown();
  }

  PinnedStager& NewStager(const StagerOptions& options = {}) {
    stagers_.push_back(Must(PinnedStager::Create(harness().device(), options)));
    return *stagers_.back();
  }

  Destination NewDestination(uint64_t count) {
    return Destination::Of<int32_t>(NewMemory(count * sizeof(int32_t)), count);
  }

  // What `destination` holds, for a reader ordered after `stream`.
  std::vector<int32_t> Read(const Destination& destination, const Stream& stream) {
    const std::vector<std::byte> bytes =
        ReadBack(destination.ptr, destination.count * sizeof(int32_t), stream);
    const auto* const values = reinterpret_cast<const int32_t*>(bytes.data());
    return std::vector<int32_t>(values, values + destination.count);
  }

 private:
  std::vector<std::unique_ptr<PinnedStager>> stagers_;
};

}  // namespace h2d::conformance

#endif  // H2D_DEVICE_CONFORMANCE_STAGER_FIXTURE_H_
