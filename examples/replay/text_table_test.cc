#include "h2d/examples/replay/text_table.h"

#include <gtest/gtest.h>

namespace h2d::replay {
namespace {

TEST(TextTableTest, TheFirstColumnStandsLeftAndTheOthersRight) {
  TextTable table;
  table.AddRow({"", "h2d", "plain"});
  table.AddRow({"steps", "36,099", "7"});
  table.AddRow({"note"});
  EXPECT_EQ(table.ToString(),
            "          h2d  plain\n"
            "steps  36,099      7\n"
            "note\n");
}

TEST(TextTableTest, NumbersReadWell) {
  EXPECT_EQ(WithCommas(0), "0");
  EXPECT_EQ(WithCommas(999), "999");
  EXPECT_EQ(WithCommas(1'000), "1,000");
  EXPECT_EQ(WithCommas(123'456'789), "123,456,789");
  EXPECT_EQ(BytesText(999), "999 B");
  EXPECT_EQ(BytesText(1'000), "1.0 kB");
  EXPECT_EQ(BytesText(999'960), "1.0 MB");
  EXPECT_EQ(BytesText(5'630'000'000), "5.6 GB");
  EXPECT_EQ(DurationText(999), "999 ns");
  EXPECT_EQ(DurationText(1'650), "1.6 us");
  EXPECT_EQ(DurationText(2'000'000), "2.0 ms");
  EXPECT_EQ(DurationText(61'000'000'000), "61.0 s");
}

TEST(TextTableTest, APercentageNeverRoundsSomethingToNothingNorToAll) {
  EXPECT_EQ(PercentText(0, 10'000), "0.0 %");
  EXPECT_EQ(PercentText(1, 10'000), "< 0.1 %");
  EXPECT_EQ(PercentText(1, 8), "12.5 %");
  EXPECT_EQ(PercentText(9'999, 10'000), "> 99.9 %");
  EXPECT_EQ(PercentText(10'000, 10'000), "100.0 %");
  EXPECT_EQ(PercentText(0, 0), "-");
}

}  // namespace
}  // namespace h2d::replay
