// How an engine's step loop is tested without a GPU; docs/testing_your_engine.md walks through it.
#include "step_loop.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "h2d/device/fake/choice.h"
#include "h2d/device/fake/fake_device.h"
#include "h2d/device/fake/host_tasks.h"
#include "h2d/device/fake/testing/hazard_check.h"
#include "h2d/docs/shown_output.h"

namespace {

constexpr uint64_t kBatch = 8;
constexpr uint64_t kBytes = kBatch * sizeof(int32_t);

// The engine's memory and streams on a simulated device, and a graph that remembers what it read.
class Rig {
 public:
  explicit Rig(std::shared_ptr<h2d::FakeDevice> device) : device_(std::move(device)) {}

  StepLoop MakeLoop(bool wait_for_readers = true) {
    const h2d::FakeGraph graph = Capture();
    auto launch = [device = device_, graph](const h2d::Stream& stream) {
      return device->LaunchGraph(graph, stream);
    };
    return StepLoop::Create(device_, {.token_ids = h2d::Destination::Of<int32_t>(tokens_, kBatch),
                                      .lengths = h2d::Destination::Of<int32_t>(lengths_, kBatch),
                                      .plan = plan_,
                                      .graph = graph_,
                                      .launch = launch,
                                      .wait_for_readers = wait_for_readers})
        .value();
  }

  // Runs `steps` steps in a row, with as many in flight as the device likes, and then to the end.
  void Run(StepLoop& loop, int32_t steps) {
    for (int32_t step = 0; step < steps; ++step) {
      const std::vector<int32_t> tokens = {step, step + 100};
      ASSERT_TRUE(loop.Step(tokens, std::vector<int32_t>{step / 2, 7}));
    }
    device_->RunUntilIdle();
  }

  const std::vector<std::vector<int32_t>>& seen() const { return *seen_; }

 private:
  // The graph is captured once, before the loop, from one kernel that reads both buffers.
  h2d::FakeGraph Capture() {
    h2d::KernelSpec decode;
    decode.name = "decode";
    decode.duration = std::chrono::microseconds(40);
    decode.reads = {{tokens_, kBytes}, {lengths_, kBytes}};
    decode.run = [seen = seen_, tokens = tokens_](const h2d::KernelMemory& memory) {
      std::vector<int32_t> values(kBatch);
      std::memcpy(values.data(), memory.Read(tokens, kBytes).data(), kBytes);
      seen->push_back(std::move(values));
    };
    EXPECT_TRUE(device_->BeginCapture(graph_));
    EXPECT_TRUE(device_->Launch(graph_, decode));
    return device_->EndCapture(graph_).value();
  }

  std::shared_ptr<h2d::FakeDevice> device_;
  h2d::Stream plan_ = device_->NewStream("plan");
  h2d::Stream graph_ = device_->NewStream("graph");
  h2d::DevicePtr tokens_ = device_->AllocateDevice(kBytes, "token ids").value();
  h2d::DevicePtr lengths_ = device_->AllocateDevice(kBytes, "lengths").value();
  std::shared_ptr<std::vector<std::vector<int32_t>>> seen_ =
      std::make_shared<std::vector<std::vector<int32_t>>>();
};

std::vector<std::vector<int32_t>> WhatEachStepSent(int32_t steps) {
  std::vector<std::vector<int32_t>> sent;
  for (int32_t step = 0; step < steps; ++step) {
    sent.push_back({step, step + 100, -1, -1, -1, -1, -1, -1});
  }
  return sent;
}

TEST(StepLoopTest, EachGraphReadsItsOwnStep) {
  const auto device = h2d::testing::WatchedFakeDevice();
  Rig rig(device);
  StepLoop loop = rig.MakeLoop();
  rig.Run(loop, 5);
  EXPECT_EQ(rig.seen(), WhatEachStepSent(5));
}

class UnkindDevices : public testing::TestWithParam<uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, UnkindDevices, testing::Range<uint64_t>(1, 51));

TEST_P(UnkindDevices, EachGraphReadsItsOwnStep) {
  const auto device =
      h2d::testing::WatchedFakeDevice({.choices = std::make_shared<h2d::HashChoices>(GetParam())});
  Rig rig(device);
  StepLoop loop = rig.MakeLoop();
  rig.Run(loop, 20);
  EXPECT_EQ(rig.seen(), WhatEachStepSent(20));
}

TEST(StepLoopTest, StagingBesideTheGraphThatReadsIsFound) {
  const auto device = h2d::FakeDevice::Create();
  Rig rig(device);
  StepLoop loop = rig.MakeLoop(/*wait_for_readers=*/false);
  rig.Run(loop, 2);
  const std::vector<h2d::Hazard> hazards = device->hazards();
  ASSERT_FALSE(hazards.empty());
  EXPECT_EQ(hazards[0].kind, h2d::HazardKind::kUnorderedAccess);
  EXPECT_EQ(hazards[0].first.memory, "token ids");
  EXPECT_EQ(hazards[0].first.lane, "graph");
  EXPECT_EQ(hazards[0].second.lane, "plan");
}

TEST(StepLoopTest, TheTimelineOfThatRunIsTheOneOnThePage) {
  const auto device = h2d::FakeDevice::Create();
  Rig rig(device);
  StepLoop loop = rig.MakeLoop(/*wait_for_readers=*/false);
  rig.Run(loop, 2);
  h2d::testing::ExpectShows("docs/testing_your_engine.md", "time/ns", device->Timeline());
}

TEST(StepLoopTest, TheSameChoicesAreTheSameRun) {
  const auto recording =
      std::make_shared<h2d::RecordingChoices>(std::make_shared<h2d::HashChoices>(7));
  const auto run = [](std::shared_ptr<h2d::ChoiceSource> choices) {
    const auto device = h2d::testing::WatchedFakeDevice({.choices = std::move(choices)});
    Rig rig(device);
    StepLoop loop = rig.MakeLoop();
    rig.Run(loop, 20);
    return device->TraceHash();
  };
  const uint64_t recorded = run(recording);
  EXPECT_EQ(run(std::make_shared<h2d::HashChoices>(7)), recorded);
  EXPECT_EQ(run(std::make_shared<h2d::ScriptedChoices>(recording->Script())), recorded);
}

TEST(StepLoopTest, TwoEngineThreadsShareADevice) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    const auto device =
        h2d::testing::WatchedFakeDevice({.choices = std::make_shared<h2d::HashChoices>(seed)});
    Rig rigs[] = {Rig(device), Rig(device)};
    const auto engine = [&](Rig& rig) {
      StepLoop loop = rig.MakeLoop();
      rig.Run(loop, 6);
    };
    ASSERT_TRUE(h2d::RunTasks(*device, {[&] { engine(rigs[0]); }, [&] { engine(rigs[1]); }}));
    for (const Rig& rig : rigs) EXPECT_EQ(rig.seen(), WhatEachStepSent(6));
  }
}

}  // namespace
