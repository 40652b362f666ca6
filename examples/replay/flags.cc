#include "h2d/examples/replay/flags.h"

#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <string_view>

#include "h2d/examples/replay/staging_way.h"

namespace h2d::replay {
namespace {

// A flag whose value is a whole number.
struct NumberFlag {
  std::string_view name;
  std::string_view help;
  uint64_t least;
  uint64_t most;
  void (*set)(Flags&, uint64_t);
  uint64_t (*get)(const Flags&);
};

template <auto kField>
void SetScheduler(Flags& flags, uint64_t value) {
  flags.replay.scheduler.*kField = static_cast<uint32_t>(value);
}
template <auto kField>
uint64_t GetScheduler(const Flags& flags) {
  return flags.replay.scheduler.*kField;
}

constexpr std::array<NumberFlag, 7> kNumberFlags = {{
    {"--requests", "only the trace's first N requests; 0: all of them", 0, 1'000'000'000,
     [](Flags& f, uint64_t v) { f.requests = static_cast<uint32_t>(v); },
     [](const Flags& f) { return uint64_t{f.requests}; }},
    {"--seed", "of made-up contents, and of the simulated device's choices", 0,
     std::numeric_limits<uint64_t>::max(), [](Flags& f, uint64_t v) { f.replay.seed = v; },
     [](const Flags& f) { return f.replay.seed; }},
    {"--max-batch", "requests that run at once", 1, 1024,
     SetScheduler<&SchedulerOptions::max_batch>, GetScheduler<&SchedulerOptions::max_batch>},
    {"--max-batched-tokens", "tokens of one step; longer prompts are prefilled in chunks", 1, 65536,
     SetScheduler<&SchedulerOptions::max_batched_tokens>,
     GetScheduler<&SchedulerOptions::max_batched_tokens>},
    {"--block-size", "tokens of one block of the key-value cache", 1, 4096,
     SetScheduler<&SchedulerOptions::block_size>, GetScheduler<&SchedulerOptions::block_size>},
    {"--kv-blocks", "blocks of the key-value cache", 1, 1'000'000,
     SetScheduler<&SchedulerOptions::kv_blocks>, GetScheduler<&SchedulerOptions::kv_blocks>},
    {"--slots", "slots of the ring; 0: fewer than four steps can need, or enough to compare", 0,
     1024, [](Flags& f, uint64_t v) { f.replay.slots = static_cast<uint32_t>(v); },
     [](const Flags& f) { return uint64_t{f.replay.slots}; }},
}};

template <class T>
struct Word {
  std::string_view text;
  T value;
};

constexpr std::array<Word<DeviceKind>, 3> kDevices = {{
    {"fake", DeviceKind::kFake},
    {"host", DeviceKind::kHost},
    {"cuda", DeviceKind::kCuda},
}};

constexpr std::array<Word<StagingWay>, 4> kWays = {{
    {ToString(StagingWay::kSeparate), StagingWay::kSeparate},
    {ToString(StagingWay::kSeparateMirrored), StagingWay::kSeparateMirrored},
    {ToString(StagingWay::kPacked), StagingWay::kPacked},
    {ToString(StagingWay::kPackedMirrored), StagingWay::kPackedMirrored},
}};

constexpr std::array<Word<Plant>, 6> kPlants = {{
    {"late-record", Plant::kLateRecord},
    {"war", Plant::kWar},
    {"one-slab", Plant::kOneSlab},
    {"graph-writes", Plant::kGraphWrites},
    {"no-wait", Plant::kNoWait},
    {"stale-mirror", Plant::kStaleMirror},
}};

std::string Quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

Expected<void> SetNumber(Flags& flags, const NumberFlag& flag, std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < flag.least ||
      value > flag.most) {
    return InvalidArgument(std::string(flag.name) + " is " + Quoted(text) +
                           "; it must be a whole number between " + std::to_string(flag.least) +
                           " and " + std::to_string(flag.most) + ".");
  }
  flag.set(flags, value);
  return {};
}

template <class T, size_t n>
Expected<void> SetWord(T& field, std::string_view name, const std::array<Word<T>, n>& words,
                       std::string_view text) {
  std::string known;
  for (const Word<T>& word : words) {
    if (word.text == text) {
      field = word.value;
      return {};
    }
    known += (known.empty() ? "" : ", ") + std::string(word.text);
  }
  return InvalidArgument(std::string(name) + " is " + Quoted(text) + "; it must be one of " +
                         known + ".");
}

const NumberFlag* NumberFlagOf(std::string_view name) {
  for (const NumberFlag& flag : kNumberFlags) {
    if (flag.name == name) return &flag;
  }
  return nullptr;
}

bool TakesValue(std::string_view name) {
  return NumberFlagOf(name) != nullptr || name == "--trace" || name == "--device" ||
         name == "--staging" || name == "--plant";
}

// REQUIRES: `TakesValue(name)`.
Expected<void> SetValue(Flags& flags, std::string_view name, std::string_view value) {
  if (const NumberFlag* const number = NumberFlagOf(name)) return SetNumber(flags, *number, value);
  if (name == "--device") return SetWord(flags.device, name, kDevices, value);
  if (name == "--plant") return SetWord(flags.replay.plant, name, kPlants, value);
  if (name == "--staging") {
    flags.chose_staging = true;
    return SetWord(flags.replay.staging, name, kWays, value);
  }
  if (value.empty()) return InvalidArgument("--trace is empty; it must name a file.");
  flags.trace = value;
  return {};
}

bool* SwitchOf(Flags& flags, std::string_view name) {
  if (name == "--help" || name == "-h") return &flags.help;
  if (name == "--compare") return &flags.compare;
  return nullptr;
}

Expected<void> CheckPlant(const Flags& flags) {
  const Plant plant = flags.replay.plant;
  if (flags.compare) {
    return InvalidArgument("--plant and --compare do not go together: a planted run stops early.");
  }
  if (IsStagedByHand(plant) && flags.chose_staging) {
    return InvalidArgument(
        "--plant=no-wait and --plant=stale-mirror are stagings by hand: leave --staging out.");
  }
  if (plant == Plant::kGraphWrites && !IsMirrored(flags.replay.staging)) {
    return InvalidArgument("--plant=graph-writes does no harm with --staging=" +
                           std::string(ToString(flags.replay.staging)) +
                           ": every tensor travels in every step.");
  }
  const bool is_race = plant != Plant::kStaleMirror && plant != Plant::kGraphWrites;
  if (is_race && flags.device != DeviceKind::kFake) {
    return InvalidArgument(
        "--plant needs --device=fake for anything but stale-mirror and graph-writes: races show "
        "only there.");
  }
  return {};
}

Expected<void> CheckTogether(const Flags& flags) {
  if (flags.compare && flags.chose_staging) {
    return InvalidArgument(
        "--staging and --compare do not go together: a comparison stages in every way.");
  }
  return flags.replay.plant == Plant::kNone ? Expected<void>() : CheckPlant(flags);
}

std::string HelpLine(std::string_view flag, const std::string& help) {
  std::string line = "  " + std::string(flag);
  line.append(line.size() < 29 ? 29 - line.size() : 1, ' ');
  return line + help + "\n";
}

}  // namespace

Expected<Flags> ParseFlags(std::span<const char* const> arguments) {
  Flags flags;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    const size_t equals = argument.find('=');
    const std::string_view name = argument.substr(0, equals);
    std::optional<std::string_view> value;
    if (equals != std::string_view::npos) value = argument.substr(equals + 1);
    if (bool* const turned_on = SwitchOf(flags, name)) {
      if (value) return InvalidArgument(std::string(name) + " takes no value.");
      *turned_on = true;
      continue;
    }
    if (!TakesValue(name)) {
      return InvalidArgument((argument.starts_with('-') ? "There is no flag " : "Nothing takes ") +
                             std::string(name) + "; see --help.");
    }
    if (!value) {
      if (i + 1 == arguments.size()) {
        return InvalidArgument(std::string(name) + " needs a value.");
      }
      value = arguments[++i];
    }
    if (Expected<void> ok = SetValue(flags, name, *value); !ok) return ErrorOf(ok);
  }
  if (Expected<void> ok = CheckTogether(flags); !ok && !flags.help) return ErrorOf(ok);
  return flags;
}

std::string HelpText() {
  std::string text =
      "Replays a trace of an LLM service: batches its requests as an engine does, stages each\n"
      "step's tensors with h2d beside a simulated graph, and verifies every byte that the graph\n"
      "reads. Exits with 0 when all was right, with 1 on a mismatch, a race or an error of the\n"
      "device, and with 2 when it cannot run what was asked.\n\n";
  text += HelpLine("--trace=FILE", "CSV: TIMESTAMP,ContextTokens,GeneratedTokens; without it, the");
  text += HelpLine("", "trace that ships with the project");
  text += HelpLine("--device=fake|host|cuda", "the simulated device, which sees every race (the");
  text += HelpLine("", "default), host memory, or a GPU");
  text += HelpLine("--staging=WAY", "packed-mirrored (one transfer of what changed in the step's");
  text += HelpLine("", "slab; the default), packed (of all of the step), separate-mirrored");
  text += HelpLine("", "(a copy of what changed in each tensor), separate (of all of it)");
  text += HelpLine("--compare", "run in each of these ways, and print them side by side");
  for (const NumberFlag& flag : kNumberFlags) {
    text += HelpLine(std::string(flag.name) + "=N", std::string(flag.help) + " (default " +
                                                        std::to_string(flag.get(Flags())) + ")");
  }
  text += HelpLine("--plant=BUG", "plant a bug in this program, to see it found: late-record (the");
  text += HelpLine("", "graph waits for an event that is recorded later), war (the plan");
  text += HelpLine("", "overwrites what the graph still reads), one-slab (two steps in");
  text += HelpLine("", "flight share a slab), graph-writes (the graph writes a field that was");
  text += HelpLine("", "not declared device_written), no-wait (a ring that reuses its buffers");
  text += HelpLine("", "unasked), stale-mirror (a mirror for two destinations)");
  text += HelpLine("--help", "print this");
  return text;
}

}  // namespace h2d::replay
