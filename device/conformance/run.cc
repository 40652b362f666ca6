#include "h2d/device/conformance/run.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "gtest/gtest-spi.h"
#include "gtest/gtest.h"
#include "h2d/device/conformance/answers.h"

namespace h2d::conformance {
namespace {

const Backend* backend_under_test = nullptr;

// A test that waits for ever would keep the machine and hide its own name: the process ends, and
// says which it was.
constexpr unsigned kMostSecondsOfATest = 100;
char running_test[256];

void EndHangingTest(int) {
  static constexpr char kText[] = "\nHANGS     ";
  if (write(STDOUT_FILENO, kText, sizeof(kText) - 1) < 0 ||
      write(STDOUT_FILENO, running_test, std::strlen(running_test)) < 0 ||
      write(STDOUT_FILENO, "\n", 1) < 0) {
    _exit(3);
  }
  _exit(2);
}

std::string NameOf(const testing::TestInfo& info) {
  return std::string(info.test_suite_name()) + "." + info.name();
}

// Takes in the results of an excluded test as long as it lives, so that GoogleTest counts no
// expected failure as one.
class Intercepted {
 public:
  bool failed() const { return Any(&testing::TestPartResult::failed); }
  bool skipped() const { return Any(&testing::TestPartResult::skipped); }

 private:
  bool Any(bool (testing::TestPartResult::*is)() const) const {
    for (int i = 0; i < results_.size(); ++i) {
      if ((results_.GetTestPartResult(i).*is)()) return true;
    }
    return false;
  }

  testing::TestPartResultArray results_;
  testing::ScopedFakeTestPartResultReporter reporter_{
      testing::ScopedFakeTestPartResultReporter::INTERCEPT_ALL_THREADS, &results_};
};

// Judges each test against the exclusions, also over several repetitions, and prints a line each.
// To GoogleTest an excluded test that failed was skipped, one that passed has failed.
class Judge final : public testing::EmptyTestEventListener {
 public:
  bool passed() const { return bad_ == 0 && passed_ + excluded_ + skipped_ > 0; }

  void OnTestStart(const testing::TestInfo& info) override {
    std::snprintf(running_test, sizeof(running_test), "%s", NameOf(info).c_str());
    alarm(kMostSecondsOfATest);
    exclusion_ = FindExclusion(backend_under_test->exclusions, NameOf(info));
    if (exclusion_ == nullptr) return;
    met_.insert(exclusion_);
    intercepted_.emplace();
  }

  void OnTestPartResult(const testing::TestPartResult& part) override {
    if (!part.passed()) messages_ += std::string("    ") + part.message() + "\n";
  }

  void OnTestEnd(const testing::TestInfo& info) override {
    alarm(0);
    if (exclusion_ != nullptr) {
      JudgeExcluded(NameOf(info));
    } else {
      JudgeExpected(NameOf(info), *info.result());
    }
    messages_.clear();
    std::fflush(stdout);
  }

  void OnTestProgramEnd(const testing::UnitTest& unit_test) override {
    const bool all_ran = unit_test.test_to_run_count() == unit_test.total_test_count();
    for (const Exclusion& exclusion : backend_under_test->exclusions) {
      if (!all_ran || met_.contains(&exclusion)) continue;
      std::printf("STALE     the exclusion of %s names no test\n", exclusion.test.c_str());
      ++bad_;
    }
    for (const auto& [question, seen] : AnswersSeen()) {
      std::printf("answers   %s\n", question.c_str());
      for (const std::string& answer : seen) std::printf("            %s\n", answer.c_str());
    }
    std::printf("conformance of %s: %d passed, %d excluded, %d skipped, %d bad\n",
                backend_under_test->name.c_str(), passed_, excluded_, skipped_, bad_);
  }

 private:
  void JudgeExpected(const std::string& name, const testing::TestResult& result) {
    if (result.Skipped()) {
      std::printf("skipped   %s\n%s", name.c_str(), messages_.c_str());
      ++skipped_;
    } else if (result.Passed()) {
      std::printf("passed    %s (%lld ms)\n", name.c_str(),
                  static_cast<long long>(result.elapsed_time()));
      ++passed_;
    } else {
      std::printf("FAILED    %s\n%s", name.c_str(), messages_.c_str());
      ++bad_;
    }
  }

  void JudgeExcluded(const std::string& name) {
    const bool failed = intercepted_->failed();
    const bool skipped = intercepted_->skipped();
    intercepted_.reset();  // From here on results count again.
    const char* const reason = exclusion_->reason.c_str();
    if (failed) {
      std::printf("excluded  %s: %s\n", name.c_str(), reason);
      ++excluded_;
      GTEST_SKIP() << "excluded: " << reason;
    } else if (skipped) {
      std::printf("skipped   %s\n", name.c_str());
      ++skipped_;
      GTEST_SKIP() << "skipped, and excluded: " << reason;
    } else {
      std::printf("FAILED    %s passed, although it is excluded: %s\n", name.c_str(), reason);
      ++bad_;
      ADD_FAILURE() << "it passed, although it is excluded: " << reason;
    }
  }

  const Exclusion* exclusion_ = nullptr;  // of the test that runs
  std::optional<Intercepted> intercepted_;
  std::string messages_;
  std::set<const Exclusion*> met_;
  int passed_ = 0;
  int excluded_ = 0;
  int skipped_ = 0;
  int bad_ = 0;
};

}  // namespace

const Backend& BackendUnderTest() { return *backend_under_test; }

int RunConformance(int argc, char** argv, Backend backend) {
  testing::InitGoogleTest(&argc, argv);
  std::signal(SIGALRM, EndHangingTest);
  backend_under_test = &backend;
  auto judge = std::make_unique<Judge>();
  const Judge& verdict = *judge;
  testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
  delete listeners.Release(listeners.default_result_printer());
  listeners.Append(judge.release());
  const bool passed = RUN_ALL_TESTS() == 0 && verdict.passed();
  backend_under_test = nullptr;
  return passed ? 0 : 1;
}

}  // namespace h2d::conformance
