// The program's command line.
#ifndef H2D_EXAMPLES_LOAD_FILE_FLAGS_H_
#define H2D_EXAMPLES_LOAD_FILE_FLAGS_H_

#include <span>
#include <string>

#include "h2d/device/error.h"
#include "h2d/stager/uploader_options.h"

namespace h2d::load_file {

struct Flags {
  bool help = false;
  std::string file;
  std::string device = "fake";
  bool verify = true;
  bool compare = false;
  uint32_t repeat = 1;
  UploaderOptions uploader{};
};

// Reads the arguments after the program's name: a file, and `--name` or `--name=value`.
// Errors: `kInvalidArgument`, with the flag's name and what is wrong with it.
Expected<Flags> ParseFlags(std::span<const char* const> arguments);

// What `--help` prints.
const char* HelpText();

}  // namespace h2d::load_file

#endif  // H2D_EXAMPLES_LOAD_FILE_FLAGS_H_
