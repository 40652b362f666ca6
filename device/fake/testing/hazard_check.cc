#include "h2d/device/fake/testing/hazard_check.h"

#include <utility>
#include <vector>

namespace h2d::testing {
namespace {

class HazardListener final : public ::testing::EmptyTestEventListener {
 public:
  // The one listener, owned by GoogleTest once it is installed.
  static HazardListener& Installed() {
    static HazardListener* const listener = [] {
      auto* made = new HazardListener;
      ::testing::UnitTest::GetInstance()->listeners().Append(made);
      return made;
    }();
    return *listener;
  }

  void Watch(std::shared_ptr<FakeDevice> device) { devices_.push_back(std::move(device)); }

 private:
  void OnTestEnd(const ::testing::TestInfo&) override {
    for (const std::shared_ptr<FakeDevice>& device : std::exchange(devices_, {})) {
      EXPECT_TRUE(NoHazards(*device));
    }
  }

  std::vector<std::shared_ptr<FakeDevice>> devices_;
};

}  // namespace

::testing::AssertionResult NoHazards(const FakeDevice& device) {
  if (device.hazard_count() == 0) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << "the simulated device saw " << device.hazard_count() << " hazard(s):\n"
         << device.Timeline();
}

void FailOnHazards(std::shared_ptr<FakeDevice> device) {
  HazardListener::Installed().Watch(std::move(device));
}

std::shared_ptr<FakeDevice> WatchedFakeDevice(FakeOptions options) {
  std::shared_ptr<FakeDevice> device = FakeDevice::Create(std::move(options));
  FailOnHazards(device);
  return device;
}

}  // namespace h2d::testing
