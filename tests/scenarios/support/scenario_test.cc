#include "h2d/tests/scenarios/support/scenario_test.h"

#include <cstring>
#include <utility>

#include "h2d/device/fake/testing/hazard_check.h"

namespace h2d::scenarios {

std::vector<Setting> Settings() {
  std::vector<Setting> all;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    for (const uint32_t slots : {1u, 2u, 5u}) {
      for (const uint64_t count : {uint64_t{16}, uint64_t{10'000}}) {
        all.push_back({seed, slots, count});
      }
    }
  }
  return all;
}

std::string NameOf(const ::testing::TestParamInfo<Setting>& info) {
  const Setting& setting = info.param;
  return "Seed" + std::to_string(setting.seed) + "Slots" + std::to_string(setting.slots) +
         "Elements" + std::to_string(setting.count);
}

void PrintTo(const Setting& setting, std::ostream* out) {
  *out << "seed " << setting.seed << ", " << setting.slots << " slots, " << setting.count
       << " elements";
}

std::shared_ptr<FakeDevice> MakeFake(uint64_t seed, FakeOptions options) {
  if (seed != 0) options.choices = std::make_shared<HashChoices>(seed);
  return FakeDevice::Create(std::move(options));
}

ScenarioTest::ScenarioTest(FakeOptions options)
    : fake_(MakeFake(GetParam().seed, std::move(options))) {}

void ScenarioTest::TearDown() {
  stager_.reset();
  EXPECT_EQ(fake_->RunUntilIdle(), 0u) << "work remains on a held stream";
  EXPECT_EQ(readers_->ran, readers_->launched);
  for (const std::string& mismatch : readers_->mismatches) ADD_FAILURE() << mismatch;
  EXPECT_TRUE(h2d::testing::NoHazards(*fake_));
}

StagerOptions ScenarioTest::RingOf(uint32_t slots) const {
  const uint64_t block = PinnedBuffer::kAlignment;
  const uint64_t slot_bytes = (bytes() + block - 1) / block * block;
  StagerOptions options;
  options.slot_bytes = slot_bytes;
  options.initial_slots = slots;
  options.max_slots = slots;
  options.max_pinned_bytes = slots * slot_bytes;
  return options;
}

void ScenarioTest::MakeStager(const StagerOptions& options, std::shared_ptr<Device> device) {
  stager_.reset();
  auto made = PinnedStager::Create(device != nullptr ? std::move(device) : fake_, options);
  ASSERT_TRUE(made) << made.error().ToString();
  stager_ = *std::move(made);
}

Values ScenarioTest::ValuesOf(int32_t tag, uint64_t count) {
  Values values(count);
  const uint32_t first = static_cast<uint32_t>(tag) * 40'503u;
  for (uint64_t i = 0; i < count; ++i) {
    values[i] = static_cast<int32_t>(first + static_cast<uint32_t>(i) * 2'654'435'761u);
  }
  return values;
}

Destination ScenarioTest::NewDestination(uint64_t count, std::string_view name) {
  return Destination::Of<int32_t>(fake_->AllocateDevice(count * sizeof(int32_t), name).value(),
                                  count);
}

void ScenarioTest::Occupy(const Stream& stream) const {
  KernelSpec busy;
  busy.name = "busy";
  busy.duration = std::chrono::milliseconds(20);
  EXPECT_TRUE(fake_->Launch(stream, std::move(busy)));
}

void ScenarioTest::Order(const Stream& earlier, const Stream& later) {
  Event event = fake_->CreateEvent().value();
  ASSERT_TRUE(fake_->Record(event, earlier));
  ASSERT_TRUE(fake_->WaitEvent(later, event));
}

void ScenarioTest::ExpectRead(const Stream& stream, const Destination& destination,
                              Values expected) {
  ++readers_->launched;
  const uint64_t bytes = expected.size() * sizeof(int32_t);
  KernelSpec reader;
  reader.name = "reader " + std::to_string(readers_->launched);
  reader.reads = {{destination.ptr, bytes}};
  reader.run = [readers = readers_, name = reader.name, ptr = destination.ptr, bytes,
                expected = std::move(expected)](const KernelMemory& memory) {
    ++readers->ran;
    const std::span<const std::byte> seen = memory.Read(ptr, bytes);
    if (std::memcmp(seen.data(), expected.data(), bytes) == 0) return;
    for (size_t i = 0; i < expected.size(); ++i) {
      int32_t value = 0;
      std::memcpy(&value, seen.data() + i * sizeof(value), sizeof(value));
      if (value == expected[i]) continue;
      readers->mismatches.push_back(name + " saw " + std::to_string(value) + " in place of " +
                                    std::to_string(expected[i]) + " at element " +
                                    std::to_string(i) + ".");
      return;
    }
  };
  ASSERT_TRUE(fake_->Launch(stream, std::move(reader)));
}

void ScenarioTest::ExpectIssued(const Expected<CopyOutcome>& outcome) const {
  ASSERT_TRUE(outcome) << outcome.error().ToString();
  EXPECT_EQ(*outcome, (CopyOutcome{CopyOutcome::Kind::kIssued, bytes()}));
}

void ScenarioTest::ExpectKind(const Expected<CopyOutcome>& outcome, CopyOutcome::Kind kind) {
  ASSERT_TRUE(outcome) << outcome.error().ToString();
  EXPECT_EQ(ToString(outcome->kind), ToString(kind));
}

void ScenarioTest::ExpectHazards(HazardKind kind) {
  EXPECT_GT(fake_->hazard_count(), 0u) << "no " << ToString(kind) << " was reported";
  for (const Hazard& hazard : fake_->hazards()) {
    EXPECT_EQ(ToString(hazard.kind), ToString(kind)) << hazard.ToString();
  }
  fake_->ClearHazards();
}

}  // namespace h2d::scenarios
