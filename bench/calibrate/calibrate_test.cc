// What is chosen from measurements, and that a little run measures, reports and draws.
#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "h2d/bench/calibrate/choose.h"
#include "h2d/bench/calibrate/measure.h"
#include "h2d/bench/calibrate/report.h"

namespace h2d::calibrate {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

// A way that takes `seconds[i]` for 1, 4, 16, ... MiB.
Series Way(const std::string& way, const std::vector<double>& seconds) {
  Series series{.way = way, .samples = {}};
  uint64_t bytes = kMiB;
  for (const double time : seconds) {
    series.samples.push_back({bytes, time, time});
    bytes *= 4;
  }
  return series;
}

Series Search(uint32_t threads, uint64_t chunk_bytes, double seconds) {
  return {.way = "pageable, pipeline",
          .threads = threads,
          .chunk_bytes = chunk_bytes,
          .samples = {{1024 * kMiB, seconds, seconds}}};
}

TEST(Choose, TheFewestThreadsAndSmallestChunksThatAreAsFast) {
  const UploaderOptions chosen =
      Choose({Search(4, kMiB, 2.0), Search(8, kMiB, 1.2), Search(8, 2 * kMiB, 1.02),
              Search(8, 4 * kMiB, 1.0), Search(12, 2 * kMiB, 1.0)});
  EXPECT_EQ(chosen.threads, 8U);
  EXPECT_EQ(chosen.chunk_bytes, 2 * kMiB);
  EXPECT_TRUE(Validate(chosen));
}

TEST(Choose, TheBorderIsWhereTheDriverIsFasterForGood) {
  const Series pipeline = Way("pageable, pipeline", {3, 4, 5, 9});
  const auto border = [&](const std::vector<double>& driver) {
    return Choose({pipeline, Way("pageable, driver", driver)})
        .policy.pageable_through_pinned_below_bytes;
  };
  constexpr uint64_t kNone = std::numeric_limits<uint64_t>::max();
  EXPECT_EQ(border({1, 2, 6, 10}), kNone);
  EXPECT_EQ(border({1, 9, 4, 8}), 16 * kMiB);
  EXPECT_EQ(border({1, 2, 3, 4}), kMiB);
}

TEST(Choose, TheLowerBorderIsBehindWhatIsFasterDirectlyFromTheSmallestOn) {
  const Series pipeline = Way("pageable, pipeline", {3, 4, 5});
  const Series ring = Way("pageable, ring", {2, 3, 6});
  const auto border = [&](const std::vector<double>& direct) {
    return Choose({pipeline, ring, Way("pageable, uploader, directly", direct)})
        .policy.pageable_through_pinned_from_bytes;
  };
  EXPECT_EQ(border({2, 1, 1}), 0U);
  EXPECT_EQ(border({1, 3.5, 1}), kMiB + 1);
  EXPECT_EQ(border({1, 2, 5.5}), 4 * kMiB + 1);
  const UploaderOptions in_loops =
      Choose({pipeline, ring, Way("pageable, uploader, directly", {1, 2, 5.5}),
              Way("loops, pageable, uploader", {2, 2, 2}),
              Way("loops, pageable, uploader, directly", {1, 3, 1})});
  EXPECT_EQ(in_loops.policy.pageable_through_pinned_from_bytes, kMiB + 1);
}

TEST(Choose, TheRingServesWhatItIsFasterFor) {
  const UploaderOptions chosen =
      Choose({Way("pageable, pipeline", {2, 4, 8}), Way("pageable, ring", {1, 4, 9})});
  EXPECT_EQ(chosen.ring_bytes, 4 * kMiB);
  EXPECT_TRUE(Validate(chosen));
}

TEST(Calibrate, ALittleRunMeasuresReportsAndDraws) {
  const auto target = load_file::NewTargetDevice("host").value();
  MeasureOptions options;
  options.most_bytes = 64 << 10;
  options.repeats = 1;
  options.pause = std::chrono::microseconds(0);
  options.threads = {1, 2};
  options.chunk_bytes = {16 << 10};
  options.sweep = true;
  const auto series = Measure(*target, options, [](std::string_view) {});
  ASSERT_TRUE(series) << series.error().ToString();
  const UploaderOptions chosen = Choose(*series);
  EXPECT_TRUE(Validate(chosen));
  const std::string text = ToText(*series, chosen);
  const std::string json = ToJson("host", *series, chosen);
  const std::string svg = ToSvg("host", *series);
  for (const char* const way :
       {"pinned, raw", "pinned, and record", "pinned, uploader", "pageable, driver",
        "pageable, uploader", "pageable, uploader, directly", "pinned, uploader, declared",
        "pageable, ring", "pageable, pipeline", "file, driver", "file, uploader",
        "pageable, uploader, after a pause"}) {
    for (const std::string& report : {text, json, svg})
      EXPECT_NE(report.find(way), std::string::npos) << way << " in\n" << report;
  }
  EXPECT_NE(text.find("pieces of 64 KiB, after a pause"), std::string::npos) << text;
  EXPECT_EQ(svg.find("pieces of"), std::string::npos) << "the sweep is no part of the picture";
  EXPECT_NE(text.find("times as fast, in loops of 1,000"), std::string::npos) << text;
  EXPECT_NE(json.find("loops, pageable, driver"), std::string::npos);
  EXPECT_EQ(svg.find("loops, "), std::string::npos) << "nor are the loops";
  for (const std::string border : {"below", "from"}) {
    EXPECT_NE(json.find("\"pageable_through_pinned_" + border + "_bytes\""), std::string::npos);
    EXPECT_NE(text.find("pageable_through_pinned_" + border + "_bytes = "), std::string::npos);
  }
  for (const std::string& report : {text, json})
    EXPECT_EQ(report.find("flush_above_bytes"), std::string::npos) << "no uploader reads it";
  EXPECT_EQ(svg.rfind("</svg>\n"), svg.size() - 7);
}

}  // namespace
}  // namespace h2d::calibrate
