// The program as a person runs it: what it prints, and how it exits.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "h2d/examples/replay/run_program.h"

namespace h2d::replay {
namespace {

void ExpectOutcome(const std::string& arguments, int status, const std::string& part) {
  SCOPED_TRACE("replay " + arguments);
  const Outcome outcome = RunProgram(arguments);
  EXPECT_EQ(outcome.status, status) << outcome.text;
  EXPECT_NE(outcome.text.find(part), std::string::npos) << outcome.text;
}

// A file of the test's own; answers its path.
std::string WriteFile(const std::string& name, const std::string& text) {
  std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

constexpr char kHeader[] = "TIMESTAMP,ContextTokens,GeneratedTokens\r\n";

TEST(ProgramTest, TheShippedTraceIsFoundAndReplayed) {
  const Outcome outcome = RunProgram("--requests=40");
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  for (const char* part : {"40 requests on the simulated device", "copies asked", "hazards",
                           "Every byte that the graphs read was as it should be."}) {
    EXPECT_NE(outcome.text.find(part), std::string::npos) << part << "\n" << outcome.text;
  }
  EXPECT_EQ(outcome.text.find('\r'), std::string::npos) << "progress shown without a terminal";
}

TEST(ProgramTest, ComparingShowsEveryWayToStageInOneTable) {
  for (const std::string device : {"fake", "host"}) {
    const Outcome outcome = RunProgram("--requests=10 --compare --device=" + device);
    EXPECT_EQ(outcome.status, 0) << outcome.text;
    const std::string time = device == "fake" ? "simulated time to stage" : "host time to stage";
    for (const std::string& part : {std::string(" separate  separate-mirrored "),
                                    std::string(" packed  packed-mirrored\n"), time}) {
      EXPECT_NE(outcome.text.find(part), std::string::npos) << part << "\n" << outcome.text;
    }
  }
}

TEST(ProgramTest, AWayToStageCanBeChosen) {
  ExpectOutcome("--requests=40", 0, " packed-mirrored\n");
  ExpectOutcome("--requests=40 --staging=separate-mirrored", 0, " separate-mirrored\n");
}

TEST(ProgramTest, APlantedBugExitsWithOneAndATimeLine) {
  for (const char* plant :
       {"late-record", "war", "one-slab", "graph-writes", "no-wait", "stale-mirror"}) {
    ExpectOutcome("--requests=40 --plant=" + std::string(plant), 1, "The device's last operations");
  }
}

TEST(ProgramTest, WhatCannotRunExitsWithTwoAndSaysWhy) {
  ExpectOutcome("--no-such-flag", 2, "There is no flag --no-such-flag");
  ExpectOutcome("--max-batch=none", 2, "--max-batch is \"none\"");
  ExpectOutcome("--compare --staging=packed", 2, "--staging and --compare do not go together");
  ExpectOutcome("--trace=/nonexistent.csv", 2, "/nonexistent.csv\" cannot be read: No such file");
  const std::string bad = WriteFile("bad.csv", std::string(kHeader) + "2023-11-16 18:17:03,x,1");
  ExpectOutcome("--trace=" + bad, 2, bad + ":2: ContextTokens is \"x\"");
}

TEST(ProgramTest, HelpExitsWithZero) { ExpectOutcome("--help", 0, "--plant=BUG"); }

TEST(ProgramTest, ARequestThatCanNeverFitIsTold) {
  const std::string trace =
      WriteFile("large.csv", std::string(kHeader) + "2023-11-16 18:17:03,100,2\r\n" +
                                 "2023-11-16 18:17:03,900,2");
  ExpectOutcome("--kv-blocks=10 --trace=" + trace, 0, "Request 2 of the trace needs 57 blocks");
}

TEST(ProgramTest, ARelativeTraceIsSoughtWhereBazelRunWasCalled) {
  const std::string path =
      WriteFile("here.csv", std::string(kHeader) + "2023-11-16 18:17:03,100,2\n");
  ASSERT_EQ(setenv("BUILD_WORKING_DIRECTORY", testing::TempDir().c_str(), 1), 0);
  ExpectOutcome("--trace=here.csv", 0, "1 requests on");
  ExpectOutcome("--trace=" + path, 0, "1 requests on");
  unsetenv("BUILD_WORKING_DIRECTORY");
}

}  // namespace
}  // namespace h2d::replay
