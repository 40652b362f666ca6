// Runs the program as a person does: for tests.
#ifndef H2D_EXAMPLES_REPLAY_RUN_PROGRAM_H_
#define H2D_EXAMPLES_REPLAY_RUN_PROGRAM_H_

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

namespace h2d::replay {

struct Outcome {
  int status = -1;
  std::string text;  // of both outputs
};

inline Outcome RunProgram(const std::string& arguments) {
  Outcome outcome;
  std::FILE* const pipe = popen(("examples/replay/replay " + arguments + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> chunk;
  while (const size_t bytes = std::fread(chunk.data(), 1, chunk.size(), pipe)) {
    outcome.text.append(chunk.data(), bytes);
  }
  const int ended = pclose(pipe);
  if (WIFEXITED(ended)) outcome.status = WEXITSTATUS(ended);
  return outcome;
}

}  // namespace h2d::replay

#endif  // H2D_EXAMPLES_REPLAY_RUN_PROGRAM_H_
