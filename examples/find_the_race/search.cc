#include "search.h"

#include <array>
#include <iterator>
#include <utility>

namespace {

constexpr uint64_t kSteps = 16;
constexpr uint64_t kBytes = 64;

// One destination for each step: whatever races, it is not the destinations.
std::shared_ptr<h2d::FakeDevice> Run(const MakeSend& make_send, const std::vector<Step>& steps,
                                     std::shared_ptr<h2d::ChoiceSource> choices) {
  auto device = h2d::FakeDevice::Create({.choices = std::move(choices)});
  const std::array<h2d::Stream, 2> streams = {device->NewStream("a"), device->NewStream("b")};
  const auto memory = device->AllocateDevice(kSteps * kBytes, "slab");
  const auto send = make_send(device);
  if (!memory || !send) return device;
  for (const Step& step : steps) {
    device->BeginOperation(step.id);
    const std::vector<std::byte> values(kBytes, static_cast<std::byte>(step.id));
    if (!(*send)(values, *memory + step.id * kBytes, streams[step.stream])) break;
    if (device->hazard_count() != 0) break;
  }
  // What the code under test gives back when it dies is no longer in use.
  static_cast<void>(device->SynchronizeDevice());
  return device;
}

std::shared_ptr<h2d::FakeDevice> Run(const MakeSend& make_send, const Plan& plan) {
  return Run(make_send, plan.steps, std::make_shared<h2d::ScriptedChoices>(plan.choices));
}

// Plan number `seed`: which stream each step uses, and the device's answers.
Plan RandomPlan(const MakeSend& make_send, uint64_t seed) {
  Plan plan;
  for (uint64_t id = 0; id < kSteps; ++id) {
    plan.steps.push_back({id, h2d::MixBits(seed * kSteps + id) >> 20 & 1});
  }
  const auto recording =
      std::make_shared<h2d::RecordingChoices>(std::make_shared<h2d::HashChoices>(seed));
  Run(make_send, plan.steps, recording);
  plan.choices = recording->Script();
  return plan;
}

// Calls `fails` with each plan that is one part smaller, and keeps those that still fail.
bool Shrink(Plan& plan, const std::function<bool(const Plan&)>& fails) {
  bool smaller = false;
  for (size_t i = plan.steps.size(); i-- > 0;) {
    Plan without = plan;
    without.steps.erase(without.steps.begin() + static_cast<std::ptrdiff_t>(i));
    if (!fails(without)) continue;
    plan = std::move(without);
    smaller = true;
  }
  for (auto it = plan.choices.begin(); it != plan.choices.end();) {
    Plan without = plan;
    const h2d::ChoicePoint point = it++->first;
    without.choices.erase(point);
    if (!fails(without)) continue;
    plan.choices.erase(point);
    smaller = true;
  }
  return smaller;
}

}  // namespace

std::optional<Finding> FindRace(const MakeSend& make_send, uint64_t max_plans) {
  const auto fails = [&](const Plan& plan) { return Run(make_send, plan)->hazard_count() != 0; };
  for (uint64_t seed = 1; seed <= max_plans; ++seed) {
    Finding finding{seed, RandomPlan(make_send, seed), {}, nullptr};
    if (!fails(finding.found)) continue;
    finding.minimal = finding.found;
    while (Shrink(finding.minimal, fails)) {
    }
    finding.device = Run(make_send, finding.minimal);
    return finding;
  }
  return std::nullopt;
}

std::string ToString(const Plan& plan) {
  std::string text;
  for (const Step& step : plan.steps) {
    text += "  step " + std::to_string(step.id) + ": send on stream " +
            (step.stream == 0 ? "a" : "b") + "\n";
    for (const auto& [point, answer] : plan.choices) {
      if (point.operation != step.id) continue;
      text += "    the device: " + std::string(h2d::ToString(point.site)) + " " +
              std::to_string(point.repeat) + " = " + std::to_string(answer) + "\n";
    }
  }
  return text;
}
