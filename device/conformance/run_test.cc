// The verdict on runs of a little suite of this program's own, each in a process of its own.
#include "h2d/device/conformance/run.h"

#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

#include "gtest/gtest.h"

namespace h2d::conformance {
namespace {

constexpr std::string_view kRunSuite = "--run-suite";
const char* program = nullptr;  // argv[0]

TEST(Suite, Passes) {}
TEST(Suite, Fails) { FAIL() << "it fails"; }
TEST(Suite, Throws) { throw std::runtime_error("it throws"); }
TEST(Suite, FailsOnAnotherThread) {
  std::thread([] { ADD_FAILURE() << "it fails elsewhere"; }).join();
}
TEST(Suite, IsSkipped) { GTEST_SKIP() << "it is skipped"; }

struct SuiteRun {
  bool passed;
  std::string xml;
};

// Runs the test `test` of the suite above, with an exclusion of `excluded` unless that is empty.
SuiteRun RunSuite(const std::string& test, const std::string& excluded) {
  const std::string xml = testing::TempDir() + "/run_test.xml";
  const std::string command = "TEST_PREMATURE_EXIT_FILE= XML_OUTPUT_FILE= '" +
                              std::string(program) + "' " + std::string(kRunSuite) + " '" +
                              excluded + "' --gtest_filter=" + test + " --gtest_output=xml:" + xml;
  const int status = std::system(command.c_str());
  std::ifstream file(xml);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return {.passed = WIFEXITED(status) && WEXITSTATUS(status) == 0, .xml = text};
}

bool Holds(const SuiteRun& run, std::string_view text) {
  return run.xml.find(text) != std::string::npos;
}

TEST(Verdict, ATestThatPassesPasses) {
  const SuiteRun run = RunSuite("Suite.Passes", "");
  EXPECT_TRUE(run.passed);
  EXPECT_TRUE(Holds(run, "result=\"completed\"")) << run.xml;
}

TEST(Verdict, ATestThatFailsFailsTheRun) {
  const SuiteRun run = RunSuite("Suite.Fails", "");
  EXPECT_FALSE(run.passed);
  EXPECT_TRUE(Holds(run, "<failure")) << run.xml;
}

TEST(Verdict, AnExcludedTestThatFailsIsSkippedForItsReason) {
  for (const char* const test : {"Suite.Fails", "Suite.Throws", "Suite.FailsOnAnotherThread"}) {
    SCOPED_TRACE(test);
    const SuiteRun run = RunSuite(test, test);
    EXPECT_TRUE(run.passed);
    EXPECT_FALSE(Holds(run, "<failure")) << run.xml;
    EXPECT_TRUE(Holds(run, "result=\"skipped\"")) << run.xml;
    EXPECT_TRUE(Holds(run, "it cannot")) << run.xml;
  }
}

TEST(Verdict, AnExcludedTestThatPassesFailsTheRun) {
  const SuiteRun run = RunSuite("Suite.Passes", "Suite.Passes");
  EXPECT_FALSE(run.passed);
  EXPECT_TRUE(Holds(run, "<failure")) << run.xml;
}

TEST(Verdict, AnExcludedTestMayBeSkipped) {
  const SuiteRun run = RunSuite("Suite.IsSkipped", "Suite.IsSkipped");
  EXPECT_TRUE(run.passed);
  EXPECT_TRUE(Holds(run, "result=\"skipped\"")) << run.xml;
}

TEST(Verdict, ARunOfNoTestFails) { EXPECT_FALSE(RunSuite("Suite.NoSuch", "").passed); }

}  // namespace
}  // namespace h2d::conformance

int main(int argc, char** argv) {
  h2d::conformance::program = argv[0];
  if (argc > 2 && argv[1] == h2d::conformance::kRunSuite) {
    h2d::conformance::Backend backend{.name = "nothing", .make_harness = {}, .exclusions = {}};
    if (const std::string excluded = argv[2]; !excluded.empty()) {
      backend.exclusions = {{excluded, "it cannot"}};
    }
    return h2d::conformance::RunConformance(argc, argv, backend);
  }
  testing::InitGoogleTest(&argc, argv);
  if (testing::GTEST_FLAG(filter) == "*") testing::GTEST_FLAG(filter) = "Verdict.*";
  return RUN_ALL_TESTS();
}
