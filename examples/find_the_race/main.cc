// Finds the race in a ring of thirty lines, makes it small, and shows it.
//
//   bazel run //examples/find_the_race [-- --trace=/tmp/race.json]
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

#include "search.h"
#include "wrong_ring.h"

namespace {

constexpr size_t kSlots = 2;

h2d::Expected<Send> MakeWrongRing(const std::shared_ptr<h2d::FakeDevice>& device) {
  h2d::Expected<WrongRing> ring = WrongRing::Create(device, kSlots);
  if (!ring) return ErrorOf(ring);
  const auto shared = std::make_shared<WrongRing>(*std::move(ring));
  return Send([shared](std::span<const std::byte> values, h2d::DevicePtr to,
                       const h2d::Stream& stream) { return shared->Send(values, to, stream); });
}

size_t TerminalColumns() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col != 0) return size.ws_col;
  const char* columns = std::getenv("COLUMNS");
  const int value = columns == nullptr ? 0 : std::atoi(columns);
  return value > 0 ? static_cast<size_t>(value) : 100;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr std::string_view kTrace = "--trace=";
  std::string trace_path;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (!argument.starts_with(kTrace) || argument.size() == kTrace.size()) {
      std::fprintf(stderr, "usage: %s [--trace=FILE.json]\n", argv[0]);
      return 2;
    }
    trace_path = argument.substr(kTrace.size());
  }
  const auto finding = FindRace(MakeWrongRing, 1000);
  if (!finding) {
    std::printf("No plan of 1000 found a race.\n");
    return 1;
  }
  std::printf("Plan %d of random plans has a race: %d steps, %d answers of an unkind device.\n",
              static_cast<int>(finding->plans), static_cast<int>(finding->found.steps.size()),
              static_cast<int>(finding->found.choices.size()));
  std::printf("What is left of it when nothing more can be left out:\n\n%s\n%s",
              ToString(finding->minimal).c_str(),
              finding->device->Timeline(TerminalColumns()).c_str());
  if (trace_path.empty()) return 0;
  std::ofstream file(trace_path);
  file << finding->device->ChromeTrace();
  file.close();
  if (!file) {
    std::fprintf(stderr, "The trace could not be written to %s.\n", trace_path.c_str());
    return 1;
  }
  std::printf("\n%s opens in https://ui.perfetto.dev.\n", trace_path.c_str());
  return 0;
}
