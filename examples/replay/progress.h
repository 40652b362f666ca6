// A line that tells a person how far a run is.
#ifndef H2D_EXAMPLES_REPLAY_PROGRESS_H_
#define H2D_EXAMPLES_REPLAY_PROGRESS_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace h2d::replay {

// Writes to standard error, ten times a second at most, and only when that is a terminal.
class Progress {
 public:
  // `name` is of the run.
  Progress(std::string_view name, uint32_t requests);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Show(uint32_t requests_done);

 private:
  const std::string name_;
  const uint32_t requests_;
  const bool is_terminal_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace h2d::replay

#endif  // H2D_EXAMPLES_REPLAY_PROGRESS_H_
