// The program's command line.
#ifndef H2D_EXAMPLES_REPLAY_FLAGS_H_
#define H2D_EXAMPLES_REPLAY_FLAGS_H_

#include <cstdint>
#include <span>
#include <string>

#include "h2d/device/error.h"
#include "h2d/examples/replay/device_kind.h"
#include "h2d/examples/replay/replay.h"

namespace h2d::replay {

struct Flags {
  bool help = false;
  std::string trace;  // empty: the trace that ships with the project
  DeviceKind device = DeviceKind::kFake;
  uint32_t requests = 0;  // only the trace's first ones; 0: all
  bool compare = false;
  bool chose_staging = false;
  ReplayOptions replay;
};

// Reads the arguments after the program's name: `--name=value` or `--name value`.
// Errors: `kInvalidArgument`, with the flag's name and what is wrong with it.
Expected<Flags> ParseFlags(std::span<const char* const> arguments);

// What `--help` prints.
std::string HelpText();

}  // namespace h2d::replay

#endif  // H2D_EXAMPLES_REPLAY_FLAGS_H_
