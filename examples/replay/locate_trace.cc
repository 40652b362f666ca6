#include "h2d/examples/replay/locate_trace.h"

#include <cstdlib>
#include <memory>

#include "tools/cpp/runfiles/runfiles.h"

namespace h2d::replay {

std::string LocateTrace(const std::string& flag) {
  const char* const called_in = std::getenv("BUILD_WORKING_DIRECTORY");
  if (called_in == nullptr || flag.starts_with('/')) return flag;
  return std::string(called_in) + "/" + flag;
}

std::string LocateShippedTrace(const std::string& argv0) {
  using bazel::tools::cpp::runfiles::Runfiles;
  std::string error;
  const std::unique_ptr<Runfiles> runfiles(Runfiles::Create(argv0, &error));
  if (runfiles == nullptr) return "";
  return runfiles->Rlocation("h2d/examples/data/azure_llm_2023_code.csv");
}

}  // namespace h2d::replay
