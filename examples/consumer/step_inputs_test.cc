#include "step_inputs.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "h2d/device/fake/fake_device.h"

namespace {

using h2d::CopyOutcome;
using h2d::DevicePtr;

constexpr uint64_t kBatch = 8;
constexpr uint64_t kBytes = kBatch * sizeof(int32_t);

// An engine of two streams: inputs are staged on `plan_`, the graph runs on `graph_`.
class StepInputsTest : public testing::Test {
 protected:
  StepInputsTest() {
    auto inputs = StepInputs::Create(device_, {h2d::Destination::Of<int32_t>(token_ids_, kBatch),
                                               h2d::Destination::Of<int32_t>(lengths_, kBatch)});
    EXPECT_TRUE(inputs) << inputs.error().ToString();
    if (inputs) inputs_ = std::make_unique<StepInputs>(*std::move(inputs));
  }

  DevicePtr Allocate(const char* name) { return device_->AllocateDevice(kBytes, name).value(); }

  // Makes what is enqueued on `later` from now on run after what `earlier` holds now.
  void Order(const h2d::Stream& earlier, const h2d::Stream& later) {
    h2d::Event event = device_->CreateEvent().value();
    ASSERT_TRUE(device_->Record(event, earlier));
    ASSERT_TRUE(device_->WaitEvent(later, event));
  }

  // The graph of a step: reads both inputs and keeps the token ids it saw.
  void LaunchGraph() {
    h2d::KernelSpec graph;
    graph.name = "graph";
    graph.reads = {{token_ids_, kBytes}, {lengths_, kBytes}};
    graph.run = [this](const h2d::KernelMemory& memory) {
      const std::span<const std::byte> bytes = memory.Read(token_ids_, kBytes);
      const auto* tokens = reinterpret_cast<const int32_t*>(bytes.data());
      seen_.emplace_back(tokens, tokens + kBatch);
    };
    ASSERT_TRUE(device_->Launch(graph_, std::move(graph)));
  }

  const std::shared_ptr<h2d::FakeDevice> device_ = h2d::FakeDevice::Create();
  const h2d::Stream plan_ = device_->NewStream("plan");
  const h2d::Stream graph_ = device_->NewStream("graph");
  const DevicePtr token_ids_ = Allocate("token ids");
  const DevicePtr lengths_ = Allocate("sequence lengths");
  std::unique_ptr<StepInputs> inputs_;
  std::vector<std::vector<int32_t>> seen_;
};

TEST_F(StepInputsTest, EachGraphSeesItsOwnStep) {
  for (int32_t step = 0; step < 5; ++step) {
    Order(graph_, plan_);  // the graph before has read its inputs
    const std::vector<int32_t> tokens = {step, step + 100};
    ASSERT_TRUE(inputs_->Stage(tokens, std::vector<int32_t>{1, 2}, plan_));
    Order(plan_, graph_);
    LaunchGraph();
  }
  device_->RunUntilIdle();
  ASSERT_EQ(seen_.size(), 5u);
  for (int32_t step = 0; step < 5; ++step) {
    EXPECT_EQ(seen_[static_cast<size_t>(step)],
              (std::vector<int32_t>{step, step + 100, -1, -1, -1, -1, -1, -1}));
  }
  EXPECT_EQ(device_->hazard_count(), 0u) << device_->Timeline();
}

TEST_F(StepInputsTest, WhatTheDestinationHoldsDoesNotTravelAgain) {
  const std::vector<int32_t> tokens = {1, 2, 3};
  const std::vector<int32_t> lengths = {7, 8, 9};
  ASSERT_TRUE(inputs_->Stage(tokens, lengths, plan_));
  const auto again = inputs_->Stage(tokens, lengths, plan_);
  ASSERT_TRUE(again) << again.error().ToString();
  EXPECT_EQ(again->token_ids.kind, CopyOutcome::Kind::kSkipped);
  EXPECT_EQ(again->sequence_lengths.kind, CopyOutcome::Kind::kSkipped);
  EXPECT_EQ(device_->counters().copies, 2u);
}

// The mistake that the stager cannot see: the next step's inputs overwrite what the graph may still
// read. On a GPU it shows once in a long while; the fake names it in every run.
TEST_F(StepInputsTest, StagingBesideTheGraphThatReadsIsReported) {
  ASSERT_TRUE(inputs_->Stage(std::vector<int32_t>{1}, std::vector<int32_t>{1}, plan_));
  Order(plan_, graph_);
  LaunchGraph();
  ASSERT_TRUE(inputs_->Stage(std::vector<int32_t>{2}, std::vector<int32_t>{1}, plan_));
  device_->RunUntilIdle();
  const std::vector<h2d::Hazard> hazards = device_->hazards();
  ASSERT_FALSE(hazards.empty());
  EXPECT_EQ(hazards[0].kind, h2d::HazardKind::kUnorderedAccess) << hazards[0].ToString();
}

}  // namespace
