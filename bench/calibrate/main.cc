// Measures a machine and prints the upload policy and options that suit it.
//
//   bazel run -c opt //bench:calibrate -- --device=cuda --out=/tmp/calibration
//
// writes calibration.txt, .json and .svg.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "h2d/bench/calibrate/choose.h"
#include "h2d/bench/calibrate/measure.h"
#include "h2d/bench/calibrate/report.h"

namespace h2d::calibrate {
namespace {

constexpr const char* kHelp =
    "usage: calibrate [--device=fake|host|cuda] [--out=PATH] [--most_mib=N] [--repeats=N]\n"
    "                 [--threads=N,N...] [--chunk_kib=N,N...] [--sweep] [--all_cores]\n"
    "                 [--min_chunk_kib=N] [--piece_kib=N] [--ring_kib=N] [--wake_kib=N]\n"
    "                 [--awake_us=N] [--pause_us=N]\n"
    "\n"
    "PATH.txt, PATH.json and PATH.svg are written; without --out, the text is printed alone.\n"
    "--threads and --chunk_kib are searched; the options of the other flags are taken as given.\n"
    "--sweep changes each of those in turn. --all_cores: the calling thread may run on any.\n";

struct Flags {
  std::string device = "host";
  std::string out;
  MeasureOptions measure;
};

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

int Run(const Flags& flags) {
  auto target = load_file::NewTargetDevice(flags.device);
  if (!target) return Fail(target.error().ToString());
  const auto told = [](std::string_view way) {
    std::fprintf(stderr, "measuring %s\n", std::string(way).c_str());
  };
  const auto series = Measure(**target, flags.measure, told);
  if (!series) return Fail(series.error().ToString());
  const UploaderOptions chosen = Choose(*series, flags.measure.uploader);
  const std::string text = ToText(*series, chosen);
  std::printf("%s\n%s", std::string((*target)->name()).c_str(), text.c_str());
  if (flags.out.empty()) return 0;
  const bool written = WriteFile(flags.out + ".txt", text) &&
                       WriteFile(flags.out + ".json", ToJson((*target)->name(), *series, chosen)) &&
                       WriteFile(flags.out + ".svg", ToSvg((*target)->name(), *series));
  return written ? 0 : Fail(flags.out + ".* could not be written.");
}

// Whole numbers, with commas between; none for what is no such list.
std::vector<uint64_t> Numbers(const std::string& text) {
  std::vector<uint64_t> numbers;
  for (const char* at = text.c_str();; ++at) {
    char* end = nullptr;
    numbers.push_back(std::strtoull(at, &end, 10));
    if (end == at || numbers.back() > 1'000'000'000) return {};
    at = end;
    if (*at == '\0') return numbers;
    if (*at != ',') return {};
  }
}

bool SetNumbers(MeasureOptions& options, std::string_view name,
                const std::vector<uint64_t>& numbers) {
  constexpr uint64_t kKiB = 1024;
  if (numbers.empty()) return false;
  const uint64_t number = numbers.front();
  if (name == "--threads") {
    options.threads.assign(numbers.begin(), numbers.end());
  } else if (name == "--chunk_kib") {
    options.chunk_bytes.clear();
    for (const uint64_t kib : numbers) options.chunk_bytes.push_back(kib * kKiB);
  } else if (name == "--most_mib" && number > 0 && number <= 65'536) {
    options.most_bytes = number << 20;
  } else if (name == "--repeats" && number > 0 && number <= 1000) {
    options.repeats = static_cast<uint32_t>(number);
  } else if (name == "--min_chunk_kib") {
    options.uploader.min_chunk_bytes = number * kKiB;
  } else if (name == "--piece_kib") {
    options.uploader.piece_bytes = number * kKiB;
  } else if (name == "--ring_kib") {
    options.uploader.ring_bytes = number * kKiB;
  } else if (name == "--wake_kib") {
    options.uploader.wake_bytes = number * kKiB;
  } else if (name == "--awake_us") {
    options.uploader.awake_for = std::chrono::microseconds(number);
  } else if (name == "--pause_us") {
    options.pause = std::chrono::microseconds(number);
  } else {
    return false;
  }
  return true;
}

bool SetFlag(Flags& flags, std::string_view argument) {
  const size_t equals = argument.find('=');
  const std::string_view name = argument.substr(0, equals);
  const std::string value(equals == argument.npos ? "" : argument.substr(equals + 1));
  if (argument == "--sweep") {
    flags.measure.sweep = true;
  } else if (argument == "--all_cores") {
    flags.measure.near_cores = false;
  } else if (name == "--device") {
    flags.device = value;
  } else if (name == "--out") {
    flags.out = value;
  } else {
    return SetNumbers(flags.measure, name, Numbers(value));
  }
  return true;
}

}  // namespace
}  // namespace h2d::calibrate

int main(int argc, char** argv) {
  h2d::calibrate::Flags flags;
  for (int i = 1; i < argc; ++i) {
    if (h2d::calibrate::SetFlag(flags, argv[i])) continue;
    std::fprintf(stderr, "%s", h2d::calibrate::kHelp);
    return std::string_view(argv[i]) == "--help" ? 0 : 2;
  }
  return h2d::calibrate::Run(flags);
}
