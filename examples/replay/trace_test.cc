#include "h2d/examples/replay/trace.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace h2d::replay {
namespace {

constexpr char kHeader[] = "TIMESTAMP,ContextTokens,GeneratedTokens\n";
constexpr char kFirst[] = "2023-11-16 18:17:03.9799600,4808,10\n";

std::string ErrorText(const std::string& text) {
  const Expected<std::vector<TraceRequest>> trace = ParseTrace(text, "t.csv");
  return trace ? "no error" : trace.error().message;
}

void ExpectError(const std::string& text, const std::string& start, const std::string& part) {
  const std::string message = ErrorText(text);
  EXPECT_EQ(message.substr(0, start.size()), start) << message;
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST(TraceTest, ArrivalsCountFromTheFirstRequest) {
  const auto trace =
      ParseTrace(std::string(kHeader) + kFirst + "2023-11-16 18:17:04.0319600,3180,8\n" +
                     "2023-11-17 00:00:00,1,0\n",
                 "t.csv");
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_EQ(trace->size(), 3U);
  EXPECT_EQ((*trace)[0], (TraceRequest{std::chrono::nanoseconds(0), 4808, 10}));
  EXPECT_EQ((*trace)[1], (TraceRequest{std::chrono::milliseconds(52), 3180, 8}));
  EXPECT_EQ((*trace)[2].arrival, std::chrono::nanoseconds(20'576'020'040'000));
}

TEST(TraceTest, ADayOfALeapYearIsOneDayLong) {
  const auto trace = ParseTrace(std::string(kHeader) +
                                    "2024-02-28T12:00:00Z,1,1\n2024-02-29 12:00:00+00:00,1,1\n"
                                    "2024-03-01 12:00:00.5,1,1\n",
                                "t.csv");
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ((*trace)[1].arrival, std::chrono::hours(24));
  EXPECT_EQ((*trace)[2].arrival, std::chrono::hours(48) + std::chrono::milliseconds(500));
}

TEST(TraceTest, LineEndingsMakeNoDifference) {
  const std::string line = "2023-11-16 18:17:04,3180,8";
  const auto lf = ParseTrace(std::string(kHeader) + kFirst + line + "\n", "t.csv");
  const auto none = ParseTrace(std::string(kHeader) + kFirst + line, "t.csv");
  const auto crlf = ParseTrace(
      "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:17:03.9799600,4808,10\r\n" + line +
          "\r\n",
      "t.csv");
  ASSERT_TRUE(lf && none && crlf);
  EXPECT_EQ(*lf, *none);
  EXPECT_EQ(*lf, *crlf);
}

TEST(TraceTest, ErrorsNameFileLineAndFault) {
  const std::string good = std::string(kHeader) + kFirst;
  ExpectError("", "t.csv:1: ", "the file is empty");
  ExpectError(kHeader, "t.csv:1: ", "no request");
  ExpectError(kFirst, "t.csv:1: ", "the header is \"2023-11-16");
  ExpectError(good + "\n" + kFirst, "t.csv:3: ", "1 column where 3 are needed");
  ExpectError(good + "2023-11-16 18:17:04,1\n", "t.csv:3: ", "2 columns");
  ExpectError(good + "2023-11-16 18:17:04,1,2,3\n", "t.csv:3: ", "4 columns");
  ExpectError(good + "yesterday,1,2\n", "t.csv:3: ", "TIMESTAMP is \"yesterday\"");
  ExpectError(good + "2023-02-29 18:17:04,1,2\n", "t.csv:3: ", "TIMESTAMP is");
  ExpectError(good + "2023-11-16 24:00:00,1,2\n", "t.csv:3: ", "TIMESTAMP is");
  ExpectError(good + "2023-11-16 18:17:04.,1,2\n", "t.csv:3: ", "TIMESTAMP is");
  ExpectError(good + "2023-11-16 18:17:04,,2\n", "t.csv:3: ", "ContextTokens is \"\"");
  ExpectError(good + "2023-11-16 18:17:04,12x,2\n", "t.csv:3: ", "ContextTokens is \"12x\"");
  ExpectError(good + "2023-11-16 18:17:04,0,2\n", "t.csv:3: ", "ContextTokens is 0");
  ExpectError(good + "2023-11-16 18:17:04,5,-2\n", "t.csv:3: ", "GeneratedTokens is -2");
  ExpectError(good + "2023-11-16 18:17:04,99999999999999999999,2\n", "t.csv:3: ",
              "ContextTokens is 99999999999999999999; it must lie between 1 and 16777216");
}

TEST(TraceTest, AnArrivalThatGoesBackInTimeIsRefused) {
  ExpectError(std::string(kHeader) + kFirst + "2023-11-16 18:17:03.9799599,1,1\n",
              "t.csv:3: ", "sort the file");
}

TEST(TraceTest, AFileThatCannotBeReadIsNamedWithTheReason) {
  const auto missing = ReadTrace("/nonexistent/t.csv");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("/nonexistent/t.csv"), std::string::npos);
  EXPECT_NE(missing.error().message.find("No such file"), std::string::npos);
  const auto directory = ReadTrace(testing::TempDir());
  ASSERT_FALSE(directory);
  EXPECT_NE(directory.error().message.find("s a directory"), std::string::npos)
      << directory.error().message;
}

TEST(TraceTest, AFileIsReadAsItsTextIs) {
  const std::string path = testing::TempDir() + "/trace_test.csv";
  std::ofstream(path, std::ios::binary) << kHeader << kFirst;
  const auto trace = ReadTrace(path);
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(*trace, *ParseTrace(std::string(kHeader) + kFirst, path));
  std::ofstream(path, std::ios::binary) << "";
  EXPECT_EQ(ReadTrace(path).error().message, path + ":1: the file is empty.");
}

}  // namespace
}  // namespace h2d::replay
