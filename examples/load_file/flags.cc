#include "h2d/examples/load_file/flags.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace h2d::load_file {
namespace {

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kMiB = 1024 * kKiB;

// A whole number from 0 to 1,000,000.
Expected<uint64_t> Number(std::string_view name, std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value > 1'000'000) {
    return InvalidArgument("--" + std::string(name) + "=" + std::string(text) +
                           " is no whole number up to 1000000.");
  }
  return value;
}

Expected<void> SetNumber(Flags& flags, std::string_view name, std::string_view text) {
  auto number = Number(name, text);
  if (!number) return ErrorOf(number);
  UploaderOptions& options = flags.uploader;
  if (name == "threads") {
    options.threads = static_cast<uint32_t>(*number);
  } else if (name == "chunk_kib") {
    options.chunk_bytes = *number * kKiB;
    options.min_chunk_bytes = std::min(options.min_chunk_bytes, options.chunk_bytes);
    options.ring_bytes = std::min(options.ring_bytes, options.chunk_bytes);
  } else if (name == "chunks") {
    options.max_chunks = static_cast<uint32_t>(*number);
  } else if (name == "pinned_mib") {
    options.max_pinned_bytes = *number * kMiB;
  } else if (name == "repeat") {
    flags.repeat = static_cast<uint32_t>(*number);
  } else {
    return InvalidArgument("There is no flag --" + std::string(name) + ".");
  }
  return {};
}

Expected<void> SetFlag(Flags& flags, std::string_view argument) {
  const size_t equals = argument.find('=');
  const std::string_view name = argument.substr(2, equals == argument.npos ? equals : equals - 2);
  if (equals != argument.npos) {
    const std::string_view value = argument.substr(equals + 1);
    if (name != "device") return SetNumber(flags, name, value);
    flags.device = value;
    return {};
  }
  if (name == "help") {
    flags.help = true;
  } else if (name == "compare") {
    flags.compare = true;
  } else if (name == "no_verify") {
    flags.verify = false;
  } else {
    return InvalidArgument("There is no flag --" + std::string(name) + " without a value.");
  }
  return {};
}

}  // namespace

Expected<Flags> ParseFlags(std::span<const char* const> arguments) {
  Flags flags;
  for (const std::string_view argument : arguments) {
    if (argument.starts_with("--")) {
      if (auto set = SetFlag(flags, argument); !set) return ErrorOf(set);
    } else if (!flags.file.empty()) {
      return InvalidArgument("There are two files: " + flags.file + " and " +
                             std::string(argument) + ".");
    } else {
      flags.file = argument;
    }
  }
  if (flags.file.empty() && !flags.help) return InvalidArgument("No file is named.");
  return flags;
}

const char* HelpText() {
  return "usage: load_file FILE [FLAG...]\n"
         "\n"
         "Loads a file into device memory and verifies it by reading it back. Of a .safetensors\n"
         "file the header is checked, and each tensor goes to a place of its own.\n"
         "\n"
         "  --device=fake|host|cuda  where to (fake: simulated, in virtual time)\n"
         "  --compare                the driver's own copy of the mapped file beside it\n"
         "  --repeat=N               N times, the fastest counts\n"
         "  --no_verify              without reading back\n"
         "  --threads=N --chunk_kib=N --chunks=N --pinned_mib=N\n"
         "                           options of the uploader\n";
}

}  // namespace h2d::load_file
