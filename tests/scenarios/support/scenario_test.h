// The stage of a scenario: a simulated device with its adversaries on, a stager on it, and readers
// that verify in stream order what a captured graph would read.
//
// Each scenario runs under several settings, so that it proves something of a kind of fault and not
// of one lucky case: small and large copies, shallow and deep rings, kind and unkind devices. At
// its end every reader must have seen what it expected and the device must have nothing to report.
#ifndef H2D_TESTS_SCENARIOS_SUPPORT_SCENARIO_TEST_H_
#define H2D_TESTS_SCENARIOS_SUPPORT_SCENARIO_TEST_H_

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "h2d/device/device.h"
#include "h2d/device/fake/fake_device.h"
#include "h2d/stager/pinned_stager.h"

namespace h2d::scenarios {

struct Setting {
  uint64_t seed = 0;    // of the device's choices; 0: the kindest
  uint32_t slots = 2;   // how deep the ring is
  uint64_t count = 16;  // elements of a copy: 64 B pass by luck where 10,000 elements fail
};

void PrintTo(const Setting& setting, std::ostream* out);
// The product of kind and unkind devices, depths and sizes.
std::vector<Setting> Settings();
std::string NameOf(const ::testing::TestParamInfo<Setting>& info);
std::shared_ptr<FakeDevice> MakeFake(uint64_t seed, FakeOptions options = {});

using Values = std::vector<int32_t>;

class ScenarioTest : public ::testing::TestWithParam<Setting> {
 protected:
  explicit ScenarioTest(FakeOptions options = {});

  // Ends the stager, lets the device run until it is idle, and looks at what was seen.
  void TearDown() override;

  // A ring of exactly `slots` slots of one copy each, on `device` or on the fake itself.
  StagerOptions RingOf(uint32_t slots) const;
  void MakeStager(const StagerOptions& options, std::shared_ptr<Device> device = nullptr);
  void MakeStager() { MakeStager(RingOf(slots())); }
  PinnedStager& stager() { return *stager_; }
  void EndStager() { stager_.reset(); }

  FakeDevice& fake() { return *fake_; }
  const std::shared_ptr<FakeDevice>& shared_fake() const { return fake_; }
  uint32_t slots() const { return GetParam().slots; }
  uint64_t count() const { return GetParam().count; }
  uint64_t bytes() const { return count() * sizeof(int32_t); }

  // Values that differ from those of every other tag in each element.
  Values ValuesOf(int32_t tag) const { return ValuesOf(tag, count()); }
  static Values ValuesOf(int32_t tag, uint64_t count);

  // Fresh device memory for one copy.
  Destination NewDestination(std::string_view name = {}) { return NewDestination(count(), name); }
  Destination NewDestination(uint64_t count, std::string_view name = {});

  // The stream is busy for 20 ms before it carries out anything enqueued after this.
  void Occupy(const Stream& stream) const;
  // Work on `later` from now on runs after what `earlier` holds now.
  void Order(const Stream& earlier, const Stream& later);
  // A kernel on `stream` that must see `expected` in `destination`.
  void ExpectRead(const Stream& stream, const Destination& destination, Values expected);

  // What a full copy of `values` must answer.
  void ExpectIssued(const Expected<CopyOutcome>& outcome) const;
  static void ExpectKind(const Expected<CopyOutcome>& outcome, CopyOutcome::Kind kind);
  template <class T>
  static void ExpectError(const Expected<T>& result, ErrorCode code) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, code) << result.error().ToString();
    EXPECT_GT(result.error().message.size(), 10u) << result.error().ToString();
    EXPECT_EQ(result.error().message.back(), '.') << result.error().ToString();
  }
  // The device has reported hazards of `kind` and of no other; forgets them.
  void ExpectHazards(HazardKind kind);

 private:
  struct Readers {
    uint64_t launched = 0;
    uint64_t ran = 0;
    std::vector<std::string> mismatches;
  };

  const std::shared_ptr<Readers> readers_ = std::make_shared<Readers>();
  const std::shared_ptr<FakeDevice> fake_;
  std::unique_ptr<PinnedStager> stager_;
};

}  // namespace h2d::scenarios

#endif  // H2D_TESTS_SCENARIOS_SUPPORT_SCENARIO_TEST_H_
