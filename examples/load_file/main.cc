// Loads a file of any size into device memory, verifies it, and tells how fast that was.
//
//   bazel run -c opt //examples/load_file -- /path/to/model.safetensors --device=cuda --compare
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <span>
#include <string>

#include "h2d/examples/load_file/flags.h"
#include "h2d/examples/load_file/load_file.h"
#include "h2d/examples/load_file/progress_bar.h"
#include "h2d/examples/load_file/target_device.h"

namespace h2d::load_file {
namespace {

int Fail(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  return 1;
}

void PrintSpeed(const char* what, uint64_t bytes, double seconds) {
  std::printf("%-12s %8.3f s  %6.2f GB/s\n", what, seconds,
              static_cast<double>(bytes) / std::max(seconds, 1e-12) / 1e9);
}

Expected<void> LoadAndReport(const Flags& flags, TargetDevice& target, const LoadPlan& plan,
                             int descriptor) {
  auto uploader = Uploader::Create(target.device(), flags.uploader);
  if (!uploader) return ErrorOf(uploader);
  double best = 1e300;
  for (uint32_t i = 0; i < std::max(flags.repeat, 1U); ++i) {
    ProgressBar bar(plan.bytes);
    auto seconds = Load(target, **uploader, plan, descriptor,
                        [&](uint64_t bytes_done) { bar.Show(bytes_done); });
    if (!seconds) return ErrorOf(seconds);
    best = std::min(best, *seconds);
  }
  PrintSpeed("uploader", plan.bytes, best);
  std::printf("%-12s %8.1f MiB at most\n", "pinned",
              static_cast<double>((*uploader)->stats().chunks.pinned_bytes_most) / (1 << 20));
  return {};
}

Expected<void> CompareWithDriver(const Flags& flags, TargetDevice& target, const LoadPlan& plan,
                                 int descriptor) {
  struct stat status = {};
  if (fstat(descriptor, &status) != 0) return FailedPrecondition("The file is gone.");
  double best = 1e300;
  for (uint32_t i = 0; i < std::max(flags.repeat, 1U); ++i) {
    auto seconds = LoadByDriver(target, plan, descriptor, static_cast<uint64_t>(status.st_size));
    if (!seconds) return ErrorOf(seconds);
    best = std::min(best, *seconds);
  }
  PrintSpeed("driver", plan.bytes, best);
  return {};
}

int Verify(TargetDevice& target, const LoadPlan& plan, int descriptor) {
  auto difference = FindDifference(target, plan, descriptor);
  if (!difference) return Fail(difference.error().ToString());
  if (*difference) return Fail(**difference + ".");
  std::printf("verified: every byte on the device is the file's\n");
  return 0;
}

int Run(const Flags& flags) {
  auto target = NewTargetDevice(flags.device);
  if (!target) return Fail(target.error().ToString());
  const int descriptor = open(flags.file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return Fail(flags.file + " could not be opened.");
  auto plan = MakePlan(**target, flags.file, descriptor);
  if (!plan) return Fail(plan.error().ToString());
  std::printf("%s: %d parts, %.3f GB, to %s\n", flags.file.c_str(),
              static_cast<int>(plan->parts.size()), static_cast<double>(plan->bytes) / 1e9,
              std::string((*target)->name()).c_str());
  if (flags.compare && plan->bytes > 0) {
    if (auto done = CompareWithDriver(flags, **target, *plan, descriptor); !done)
      return Fail(done.error().ToString());
  }
  if (auto done = LoadAndReport(flags, **target, *plan, descriptor); !done)
    return Fail(done.error().ToString());
  const int verdict = flags.verify ? Verify(**target, *plan, descriptor) : 0;
  close(descriptor);
  if ((*target)->hazards() != 0) return Fail("The simulated device reports a race.");
  return verdict;
}

}  // namespace
}  // namespace h2d::load_file

int main(int argc, char** argv) {
  const auto flags = h2d::load_file::ParseFlags(
      std::span<const char* const>(argv + 1, static_cast<size_t>(argc - 1)));
  if (!flags) {
    std::fprintf(stderr, "%s\n%s", flags.error().message.c_str(), h2d::load_file::HelpText());
    return 2;
  }
  if (flags->help) {
    std::printf("%s", h2d::load_file::HelpText());
    return 0;
  }
  return h2d::load_file::Run(*flags);
}
