// Captures in progress, for tests of what they survive (I7).
#ifndef H2D_DEVICE_CONFORMANCE_CAPTURE_FIXTURE_H_
#define H2D_DEVICE_CONFORMANCE_CAPTURE_FIXTURE_H_

#include <functional>
#include <string_view>

#include "h2d/device/conformance/conformance_test.h"

namespace h2d::conformance {

inline constexpr CaptureMode kCaptureModes[] = {CaptureMode::kGlobal, CaptureMode::kThreadLocal,
                                                CaptureMode::kRelaxed};

constexpr std::string_view ToString(CaptureMode mode) noexcept {
  switch (mode) {
    case CaptureMode::kGlobal:
      return "Global";
    case CaptureMode::kThreadLocal:
      return "ThreadLocal";
    case CaptureMode::kRelaxed:
      return "Relaxed";
  }
  return "unknown";
}

class CaptureFixture : public ConformanceTest {
 protected:
  // Runs `work` while a stream of nobody's concern is being captured, in each mode, once by the
  // test's own thread and once by another; fails when a capture does not end well, or when its
  // graph does not run. `work` throws or fails when it cannot do its own job.
  void SurvivesCaptures(const std::function<void()>& work);

 private:
  void SurvivesOwnCapture(CaptureMode mode, const std::function<void()>& work);
  void SurvivesAnothersCapture(CaptureMode mode, const std::function<void()>& work);
  void CheckGraph(Expected<std::unique_ptr<Graph>> graph, DevicePtr written);
};

}  // namespace h2d::conformance

#endif  // H2D_DEVICE_CONFORMANCE_CAPTURE_FIXTURE_H_
