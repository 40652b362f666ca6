// The run as Chrome trace JSON, read back by a parser: well formed, and such that Perfetto draws it
// (slices of a thread nest, arrows begin and end in slices, everybody has a name).
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "h2d/device/fake/fake_device.h"
#include "h2d/device/fake/host_tasks.h"

namespace h2d {
namespace {

using Json = nlohmann::json;

std::vector<Json> EventsOf(const FakeDevice& device) {
  const Json parsed = Json::parse(device.ChromeTrace(), nullptr, /*allow_exceptions=*/false);
  EXPECT_FALSE(parsed.is_discarded()) << device.ChromeTrace();
  if (parsed.is_discarded()) return {};
  EXPECT_EQ(parsed.at("displayTimeUnit"), "ns");
  std::vector<Json> events(parsed.at("traceEvents").begin(), parsed.at("traceEvents").end());
  for (const Json& event : events) {
    EXPECT_TRUE(event.at("ph").is_string() && event.at("pid").is_number_integer() &&
                event.at("tid").is_number_integer() && event.at("ts").is_number() &&
                event.at("name").is_string())
        << event;
  }
  return events;
}

std::vector<Json> OfPhase(const std::vector<Json>& events, const std::string& phase) {
  std::vector<Json> some;
  for (const Json& event : events) {
    if (event.at("ph") == phase) some.push_back(event);
  }
  return some;
}

using Thread = std::pair<int, int>;
Thread ThreadOf(const Json& event) { return {event.at("pid"), event.at("tid")}; }

// In picoseconds: sums of parsed decimals are not exact.
int64_t At(const Json& microseconds) {
  return static_cast<int64_t>(microseconds.get<double>() * 1e6 + 0.5);
}

// Perfetto knows a thread by its number, takes 0 for the idle thread, and merges a thread that has
// its process's number with the main one.
void ExpectThreadsKeptApart(const std::vector<Json>& events) {
  std::map<int, int> process_of;
  for (const Json& event : events) {
    const auto [process, thread] = ThreadOf(event);
    EXPECT_GT(process, 0) << event;
    EXPECT_GT(thread, 0) << event;
    EXPECT_EQ(thread == process, event.at("name") == "process_name") << event;
    EXPECT_EQ(process_of.emplace(thread, process).first->second, process) << event;
  }
}

void ExpectDrawable(const std::vector<Json>& events) {
  ExpectThreadsKeptApart(events);
  std::set<Thread> named;
  for (const Json& event : OfPhase(events, "M")) {
    if (event.at("name") == "thread_name") named.insert(ThreadOf(event));
  }
  std::map<Thread, std::vector<std::pair<int64_t, int64_t>>> slices;
  for (const Json& event : OfPhase(events, "X")) {
    EXPECT_EQ(named.count(ThreadOf(event)), 1U) << event;
    slices[ThreadOf(event)].emplace_back(At(event.at("ts")),
                                         At(event.at("ts")) + At(event.at("dur")));
  }
  for (const auto& [thread, spans] : slices) {
    for (size_t i = 1; i < spans.size(); ++i) {
      // In the order written: each begins where the last ended, or later, or is the same.
      EXPECT_TRUE(spans[i].first >= spans[i - 1].second || spans[i] == spans[i - 1])
          << thread.first << "/" << thread.second << ", slice " << i;
    }
  }
  std::map<std::string, std::vector<Json>> arrows;
  for (const char* phase : {"s", "f"}) {
    for (const Json& event : OfPhase(events, phase)) {
      arrows[event.at("cat").get<std::string>() + event.at("id").dump()].push_back(event);
      bool inside = false;
      for (const auto& [begin, end] : slices[ThreadOf(event)]) {
        inside = inside || (begin <= At(event.at("ts")) && At(event.at("ts")) <= end);
      }
      EXPECT_TRUE(inside) << event;
    }
  }
  for (const auto& [id, ends] : arrows) {
    ASSERT_EQ(ends.size(), 2U) << id;
    EXPECT_LE(At(ends[0].at("ts")), At(ends[1].at("ts"))) << id;
  }
}

TEST(ChromeTrace, ShowsBothAccessesOfAHazardAndAnArrowBetweenThem) {
  const std::shared_ptr<FakeDevice> device = FakeDevice::Create();
  device->NameTask("engine \"one\"\n\xff");  // JSON is UTF-8, and has no new line in a string
  const Stream stream = device->NewStream("copies");
  const DevicePtr target = *device->AllocateDevice(64, "token ids");
  const PinnedBuffer slot = *device->AllocatePinned(64);
  ASSERT_TRUE(device->CopyAsync(target, slot.bytes(), stream));
  device->OnHostAccess(slot.bytes(), HostAccess::kWrite);
  ASSERT_TRUE(device->SynchronizeStream(stream));
  const std::vector<Json> events = EventsOf(*device);
  ExpectDrawable(events);

  const std::vector<Json> instants = OfPhase(events, "i");
  ASSERT_EQ(instants.size(), 2U);
  EXPECT_EQ(instants[0].at("name"),
            "hazard: write to the source of a copy in flight (first access)");
  EXPECT_EQ(instants[1].at("args").at("missing"), device->hazards()[0].missing);
  size_t edges = 0;
  for (const Json& event : OfPhase(events, "s")) edges += event.at("cat") == "missing edge";
  EXPECT_EQ(edges, 1U);
  std::set<std::string> names;
  for (const Json& event : OfPhase(events, "M")) names.insert(event.at("args").at("name"));
  EXPECT_EQ(names, (std::set<std::string>{"host", "streams", "engine \"one\" ?", "copies"}));
}

TEST(ChromeTrace, OfTwoTasksSeveralStreamsAndAGraphIsDrawable) {
  const std::shared_ptr<FakeDevice> device =
      FakeDevice::Create({.choices = std::make_shared<HashChoices>(5)});
  const DevicePtr target = *device->AllocateDevice(256);
  const auto engine = [&] {
    const Stream copies = device->NewStream();
    const Stream graph = device->NewStream();
    ASSERT_TRUE(device->BeginCapture(graph, CaptureMode::kThreadLocal));
    ASSERT_TRUE(device->Launch(graph, {.name = "a"}));
    ASSERT_TRUE(device->Launch(graph, {.name = "b"}));
    const Expected<FakeGraph> decode = device->EndCapture(graph);
    ASSERT_TRUE(decode);
    const PinnedBuffer slot = *device->AllocatePinned(64);
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(device->CopyAsync(target, slot.bytes(), copies));
      ASSERT_TRUE(device->LaunchGraph(*decode, graph));
    }
    ASSERT_TRUE(device->SynchronizeStream(copies));
  };
  ASSERT_TRUE(RunTasks(*device, {engine, engine}));
  const Stream held = device->NewStream("held");
  ASSERT_TRUE(device->Hold(held));
  ASSERT_TRUE(device->Launch(held, {.name = "never done"}));
  ExpectDrawable(EventsOf(*device));
}

TEST(ChromeTrace, OfNothingIsAnEmptyRun) {
  EXPECT_EQ(OfPhase(EventsOf(*FakeDevice::Create()), "X").size(), 0U);
}

}  // namespace
}  // namespace h2d
