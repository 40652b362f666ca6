// Measures a machine and prints the upload policy and options that suit it.
//
//   bazel run -c opt //bench:calibrate -- --device=cuda --out=/tmp/calibration
//
// writes calibration.txt, .json and .svg.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "h2d/bench/calibrate/choose.h"
#include "h2d/bench/calibrate/measure.h"
#include "h2d/bench/calibrate/report.h"

namespace h2d::calibrate {
namespace {

constexpr const char* kHelp =
    "usage: calibrate [--device=fake|host|cuda] [--out=PATH] [--most_mib=N] [--repeats=N]\n"
    "\n"
    "PATH.txt, PATH.json and PATH.svg are written; without --out, the text is printed alone.\n";

bool WriteFile(const std::string& path, const std::string& text) {
  std::FILE* const file = std::fopen(path.c_str(), "w");
  if (file == nullptr) return false;
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  return std::fclose(file) == 0 && written;
}

int Fail(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  return 1;
}

int Run(const std::string& device, const std::string& out, const MeasureOptions& options) {
  auto target = load_file::NewTargetDevice(device);
  if (!target) return Fail(target.error().ToString());
  const auto told = [](std::string_view way) {
    std::fprintf(stderr, "measuring %s\n", std::string(way).c_str());
  };
  const auto series = Measure(**target, options, told);
  if (!series) return Fail(series.error().ToString());
  const UploaderOptions chosen = Choose(*series);
  const std::string text = ToText(*series, chosen);
  std::printf("%s\n%s", std::string((*target)->name()).c_str(), text.c_str());
  if (out.empty()) return 0;
  const bool written = WriteFile(out + ".txt", text) &&
                       WriteFile(out + ".json", ToJson((*target)->name(), *series, chosen)) &&
                       WriteFile(out + ".svg", ToSvg((*target)->name(), *series));
  return written ? 0 : Fail(out + ".* could not be written.");
}

}  // namespace
}  // namespace h2d::calibrate

int main(int argc, char** argv) {
  std::string device = "host";
  std::string out;
  h2d::calibrate::MeasureOptions options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const size_t equals = argument.find('=');
    const std::string_view name = argument.substr(0, equals);
    const std::string value(equals == argument.npos ? "" : argument.substr(equals + 1));
    const uint64_t number = std::strtoull(value.c_str(), nullptr, 10);
    if (name == "--device") {
      device = value;
    } else if (name == "--out") {
      out = value;
    } else if (name == "--most_mib" && number > 0 && number <= 65'536) {
      options.most_bytes = number << 20;
    } else if (name == "--repeats" && number > 0 && number <= 1000) {
      options.repeats = static_cast<uint32_t>(number);
    } else {
      std::fprintf(stderr, "%s", h2d::calibrate::kHelp);
      return name == "--help" ? 0 : 2;
    }
  }
  return h2d::calibrate::Run(device, out, options);
}
