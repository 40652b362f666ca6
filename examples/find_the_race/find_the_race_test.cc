#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "h2d/docs/shown_output.h"
#include "search.h"
#include "wrong_ring.h"

namespace {

h2d::Expected<Send> MakeWrongRing(const std::shared_ptr<h2d::FakeDevice>& device) {
  h2d::Expected<WrongRing> ring = WrongRing::Create(device, 2);
  if (!ring) return ErrorOf(ring);
  const auto shared = std::make_shared<WrongRing>(*std::move(ring));
  return Send([shared](std::span<const std::byte> values, h2d::DevicePtr to,
                       const h2d::Stream& stream) { return shared->Send(values, to, stream); });
}

// A ring of one slot, whose owner waits for the copy that uses it.
h2d::Expected<Send> MakeRightRing(const std::shared_ptr<h2d::FakeDevice>& device) {
  const auto memory = std::make_shared<h2d::PinnedBuffer>(device->AllocatePinned(64).value());
  const auto sent = std::make_shared<h2d::Event>(device->CreateEvent().value());
  return Send([=](std::span<const std::byte> values, h2d::DevicePtr to,
                  const h2d::Stream& stream) -> h2d::Expected<void> {
    if (auto done = device->Synchronize(*sent); !done) return done;
    const auto bytes = memory->bytes().first(values.size());
    device->OnHostAccess(bytes, h2d::HostAccess::kWrite);
    std::copy(values.begin(), values.end(), bytes.begin());
    if (auto copied = device->CopyAsync(to, bytes, stream); !copied) return copied;
    return device->Record(*sent, stream);
  });
}

TEST(FindTheRace, ThePlantedOneIsFoundShrunkToThreeStepsAndShown) {
  const auto finding = FindRace(MakeWrongRing, 1000);
  ASSERT_TRUE(finding.has_value());
  // Two slots and a third copy that wants the first one's back; the second was seen complete first.
  ASSERT_EQ(finding->minimal.steps.size(), 3U) << ToString(finding->minimal);
  EXPECT_NE(finding->minimal.steps[0].stream, finding->minimal.steps[1].stream);
  EXPECT_LE(finding->minimal.choices.size(), 1U) << ToString(finding->minimal);
  const std::vector<h2d::Hazard> hazards = finding->device->hazards();
  ASSERT_EQ(hazards.size(), 1U);
  EXPECT_EQ(hazards[0].kind, h2d::HazardKind::kWriteToSourceInFlight);
  const std::string text = finding->device->Timeline(80);
  EXPECT_NE(text.find("HAZARD: no edge: host has not observed"), std::string::npos) << text;
}

TEST(FindTheRace, WhatTheReadmeShowsIsWhatIsFound) {
  const auto finding = FindRace(MakeWrongRing, 1000);
  ASSERT_TRUE(finding.has_value());
  h2d::testing::ExpectShows("README.md", "HAZARD: no edge", finding->device->Timeline(1000));
}

TEST(FindTheRace, ARingWithoutTheMistakePassesEveryPlan) {
  EXPECT_FALSE(FindRace(MakeRightRing, 300).has_value());
}

TEST(FindTheRace, TheSearchIsTheSameEveryTime) {
  const auto once = FindRace(MakeWrongRing, 1000);
  const auto again = FindRace(MakeWrongRing, 1000);
  ASSERT_TRUE(once && again);
  EXPECT_EQ(once->plans, again->plans);
  EXPECT_EQ(once->device->TraceHash(), again->device->TraceHash());
}

}  // namespace
