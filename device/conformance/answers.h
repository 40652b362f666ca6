// Questions that CUDA may answer in several ways.
//
// The documents allow more than one machine shows, so each question has a set of allowed answers:
// an answer outside the set fails the test, the run prints which members it saw, and the fake's own
// test demands that it can produce each one.
#ifndef H2D_DEVICE_CONFORMANCE_ANSWERS_H_
#define H2D_DEVICE_CONFORMANCE_ANSWERS_H_

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "h2d/device/conformance/harness.h"
#include "h2d/device/error.h"

namespace h2d::conformance {

struct Question {
  std::string text;
  std::set<std::string> allowed;
  std::function<Expected<std::string>(Harness&)> ask;
};

const std::vector<Question>& Questions();

// What this process saw, by question. Thread-compatible.
std::map<std::string, std::set<std::string>>& AnswersSeen();

}  // namespace h2d::conformance

#endif  // H2D_DEVICE_CONFORMANCE_ANSWERS_H_
