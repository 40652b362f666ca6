// The time line as a person sees it: fitted to the width asked for, hazards drawn in their place.
#include <gtest/gtest.h>

#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "h2d/device/fake/fake_device.h"
#include "h2d/device/fake/internal/printable_name.h"

namespace h2d {
namespace {

// A slot that is written again while its copy may still read it.
std::shared_ptr<FakeDevice> PlantedRace() {
  const std::shared_ptr<FakeDevice> device = FakeDevice::Create();
  device->NameTask("engine");
  const Stream stream = device->NewStream("copies");
  const DevicePtr target = *device->AllocateDevice(64, "token ids");
  const PinnedBuffer slot = *device->AllocatePinned(64);
  device->NamePinned(slot.bytes().data(), "slot 0");
  EXPECT_TRUE(device->CopyAsync(target, slot.bytes(), stream));
  device->OnHostAccess(slot.bytes(), HostAccess::kWrite);
  device->RunUntilIdle();
  EXPECT_TRUE(device->SynchronizeStream(stream));
  return device;
}

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(Timeline, DrawsTheIntervalInFlightBothAccessesAndTheMissingEdge) {
  // The copy is called at + and in flight (#) until *; the write comes in between, and the line
  // from o to x is the order that is missing.
  const std::string expected =
      R"(  0 = engine, 1 = copies
  time/ns 0   1
  0           .0  new stream
  100     .1      device alloc of 64 B at token ids + 0
  34200   .2      pinned alloc of 64 B at slot 0 + 0
  35550       !+3 copy of 64 B from slot 0 + 0 to token ids + 0
  35550   !.4 #   host write of 64 B at slot 0 + 0
          x---o   HAZARD: no edge: engine has not observed that copy #3 of 64 B from slot 0 + 0 to
              #     token ids + 0 on copies is complete: no query or wait of an event recorded on
              #     copies after it succeeded before host write #4 of 64 B at slot 0 + 0
  42151       !*3 complete: copy of 64 B from slot 0 + 0 to token ids + 0
)";
  const std::string text = PlantedRace()->Timeline();
  EXPECT_EQ(text.substr(0, expected.size()), expected) << text;
}

TEST(Timeline, FitsTheWidthThatIsAskedForAndLosesNothingByIt) {
  const std::shared_ptr<FakeDevice> device = PlantedRace();
  for (size_t columns : {60U, 79U, 80U, 100U, 132U, 200U}) {
    const std::string text = device->Timeline(columns);
    std::string joined;
    for (const std::string& line : LinesOf(text)) {
      EXPECT_LE(line.size(), columns) << line;
      joined += line.substr(std::min(line.size(), line.find_first_not_of(' '))) + " ";
    }
    EXPECT_NE(joined.find("hazard: write to the source of a copy in flight"), std::string::npos);
    EXPECT_NE(text.find("+ 0"), std::string::npos);
  }
  EXPECT_EQ(device->Timeline(10), device->Timeline(60));  // no narrower
}

TEST(Timeline, KeepsItsColumnsAndItsCharactersWhateverTheNamesAre) {
  const std::shared_ptr<FakeDevice> device = FakeDevice::Create();
  std::string euros;
  for (int i = 0; i < 100; ++i) euros += "\xe2\x82\xac";
  const Stream stream = device->NewStream("two\nlines");
  const DevicePtr target = *device->AllocateDevice(64, "bell\a\xff");
  ASSERT_TRUE(device->Launch(stream, {.name = euros, .writes = {{target, 64}}}));
  const PinnedBuffer slot = *device->AllocatePinned(64);
  device->NamePinned(slot.bytes().data(), "slot\r");
  ASSERT_TRUE(device->CopyAsync(target, slot.bytes(), stream));
  device->RunUntilIdle();
  for (size_t columns = 60; columns < 80; ++columns) {
    const std::string text = device->Timeline(columns);
    EXPECT_NE(text.find("two lines"), std::string::npos) << text;
    for (const std::string& line : LinesOf(text)) {
      EXPECT_LE(line.size(), columns) << line;
      EXPECT_EQ(fake_internal::PrintableName(line), line);
    }
  }
}

TEST(Timeline, OfManyStreamsKeepsTheLanesOfTheHazard) {
  const std::shared_ptr<FakeDevice> device = FakeDevice::Create();
  const DevicePtr target = *device->AllocateDevice(64, "slab");
  for (int i = 0; i < 64; ++i) {
    const Stream stream = device->NewStream("s" + std::to_string(i));
    if (i != 7 && i != 50) {
      ASSERT_TRUE(device->Launch(stream, {.name = "other"}));
      continue;
    }
    ASSERT_TRUE(device->Launch(stream, {.name = "writer", .writes = {{target, 64}}}));
  }
  const std::string text = device->Timeline(80);
  const std::vector<std::string> lines = LinesOf(text);
  for (const std::string& line : lines) EXPECT_LE(line.size(), 80U) << line;
  EXPECT_NE(lines[0].find("= s7, "), std::string::npos) << text;
  EXPECT_NE(text.find("= s50"), std::string::npos) << text;
  EXPECT_NE(text.find("58 lanes"), std::string::npos) << text;
  EXPECT_NE(text.find("HAZARD"), std::string::npos) << text;
}

TEST(Timeline, OfALongRunShowsTheRowsOfTheFirstHazard) {
  const std::shared_ptr<FakeDevice> device = FakeDevice::Create();
  const Stream a = device->NewStream("a");
  const Stream b = device->NewStream("b");
  const DevicePtr target = *device->AllocateDevice(64);
  const auto others = [&] {
    for (int i = 0; i < 500; ++i) ASSERT_TRUE(device->Launch(a, {.name = "other"}));
  };
  others();
  ASSERT_TRUE(device->Launch(a, {.name = "first", .writes = {{target, 64}}}));
  ASSERT_TRUE(device->Launch(b, {.name = "second", .writes = {{target, 64}}}));
  others();
  const std::string text = device->Timeline();
  EXPECT_NE(text.find("kernel 'first'"), std::string::npos) << text;
  EXPECT_NE(text.find("kernel 'second'"), std::string::npos) << text;
  EXPECT_NE(text.find("later rows are not shown"), std::string::npos) << text;
  EXPECT_LT(LinesOf(text).size(), 300U);
}

TEST(Timeline, OfNothingIsEmpty) {
  EXPECT_EQ(FakeDevice::Create()->Timeline(), "");
  EXPECT_EQ(FakeDevice::Create({.keep_trace = false})->Timeline(), "");
}

}  // namespace
}  // namespace h2d
