// The suite on the simulated device: as kind as it can be, and with adversaries, which choose from
// one seed after another (`--gtest_repeat`).
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "h2d/device/conformance/fake_harness.h"
#include "h2d/device/conformance/run.h"

int main(int argc, char** argv) {
  using h2d::ChoiceSite;
  const bool adversarial = argc > 1 && std::string_view(argv[1]) == "--adversarial";
  // Tests hold streams and go on: a call that waits for its stream would wait for ever.
  const h2d::ChoiceSites sites = h2d::ChoiceSites::Live()
                                     .Without(ChoiceSite::kEnqueueBlocks)
                                     .Without(ChoiceSite::kConfidential);
  h2d::conformance::Backend backend;
  backend.name = adversarial ? "fake, adversarial" : "fake, kindest";
  backend.make_harness =
      [=,
       seed = uint64_t{0}]() mutable -> h2d::Expected<std::unique_ptr<h2d::conformance::Harness>> {
    if (!adversarial) return h2d::conformance::MakeFakeHarness(nullptr, sites);
    std::printf("seed %llu: ", static_cast<unsigned long long>(seed));
    return h2d::conformance::MakeFakeHarness(std::make_shared<h2d::HashChoices>(seed++), sites);
  };
  backend.exclusions = {
      {"TwoDevices.PinnedMemoryOfOneServesBoth", "Two simulations know nothing of each other."},
  };
  return h2d::conformance::RunConformance(argc, argv, backend);
}
